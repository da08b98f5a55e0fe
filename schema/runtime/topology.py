"""The only declarer: makes the broker's topology what ``schema.wire.queues`` says.

The publisher calls it for every session it opens and ``docstage-dlq topology`` on request; neither may import
the other, which is why it is here. Consumers only look.
"""

from schema.runtime.broker import BrokerSession, Declared
from schema.wire.queues import topology


async def declare_topology(session: BrokerSession) -> int:
    """Declare every exchange, queue and binding; what is there already stays as it is.

    Idempotent: yes.

    Returns:
        How many things were declared.

    Raises:
        MismatchError: something of the name exists with other arguments; a new layout needs new names.
        BrokerUnavailableError: nobody answers.
    """
    wanted = topology()
    items: tuple[Declared, ...] = (*wanted.exchanges, *wanted.queues, *wanted.bindings)
    for item in items:
        await session.declare(item)
    return len(items)
