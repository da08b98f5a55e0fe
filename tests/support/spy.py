"""A listener on every exchange: what Docstage says, body and headers, copied into a list."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import aio_pika
from aio_pika.abc import AbstractIncomingMessage

from schema.domain.states import Lane
from schema.wire.queues import NOTICES_KEY, topology

Heard = list[tuple[bytes, str]]


@asynccontextmanager
async def spy(amqp_url: str) -> AsyncIterator[Heard]:
    """Listen for as long as the block runs; what is heard is ``(body, everything else as text)``."""
    heard: Heard = []

    async def hear(message: AbstractIncomingMessage) -> None:
        heard.append((message.body, repr((message.headers, message.properties, message.routing_key))))

    connection = await aio_pika.connect(amqp_url)
    async with connection:
        channel = await connection.channel()
        queue = await channel.declare_queue(exclusive=True)
        for exchange in topology().exchanges:
            for key in [*Lane, NOTICES_KEY] if exchange.kind == "direct" else ["#"]:
                await queue.bind(exchange.name, key)
        await queue.consume(hear, no_ack=True)
        yield heard
