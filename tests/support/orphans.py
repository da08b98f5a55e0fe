"""A worker that is killed in the middle of a call: ``python -m tests.support.orphans SCRATCH PROGRAM``.

Prints the child's process id once the child has been given its work, and then waits to be killed.
"""

import asyncio
import sys
from pathlib import Path

from stages.sandbox.pool import Sandbox
from stages.sandbox.settings import Budget, SandboxSettings


async def main(scratch: Path, program: str) -> None:
    """Call a child that starts a tool which never ends."""
    sandbox = Sandbox(SandboxSettings(scratch_dir=scratch), operations="tests.support.operations")
    await sandbox.start()

    async def tell(event: dict[str, int]) -> None:
        print(event["pid"], flush=True)  # noqa: T201 - how the test learns it

    await sandbox.call("use_tool", {"program": program}, budget=Budget(600, 600), on_event=tell)


asyncio.run(main(Path(sys.argv[1]), sys.argv[2]))
