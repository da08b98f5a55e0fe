"""The command line client, run as a user runs it."""

import asyncio
import os
import subprocess
import sys
from collections.abc import Mapping

from tests.support.system import ROOT


async def docstage(environment: Mapping[str, str], *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the client as a user does."""
    return await asyncio.to_thread(
        subprocess.run,
        [sys.executable, "-m", "intake.cli", *arguments],
        cwd=ROOT,
        env={**os.environ, "COLUMNS": "200", **environment},  # noqa: TID251 - PATH and the like
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
