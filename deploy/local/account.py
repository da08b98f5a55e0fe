"""Run a program under another account than root's."""

import os
import subprocess
from functools import cache
from pathlib import Path

from deploy.local.console import LauncherError

_CAPABILITIES = ("", "+dac_read_search", "+dac_override")


def _lend(capability: str) -> tuple[str, ...]:
    if not capability:
        return ()
    # Without this bit access(2) answers as if the capability were not there, and PostgreSQL asks it.
    return (f"--inh-caps={capability}", f"--ambient-caps={capability}", "--securebits=+no_setuid_fixup")


@cache
def command_prefix(account: str, directory: Path) -> tuple[str, ...]:
    """Return what to put before a command so that it runs as ``account`` and can reach ``directory``.

    Root's checkout may lie where nobody else may enter. Then the program is lent the one right to pass by, the
    smallest that works here, rather than have its data put somewhere else.

    Returns:
        Nothing when we are not root: the program then runs under our own account.

    Raises:
        LauncherError: there is no such account, or it cannot be let in.
    """
    if os.geteuid() != 0:
        return ()
    switch = ("setpriv", f"--reuid={account}", f"--regid={account}", "--clear-groups")
    for capability in _CAPABILITIES:
        prefix = (*switch, *_lend(capability))
        if (
            subprocess.run([*prefix, "/usr/bin/test", "-x", directory], capture_output=True, check=False).returncode
            == 0
        ):
            return prefix
    message = f"the account {account} cannot reach {directory}"
    raise LauncherError(message)
