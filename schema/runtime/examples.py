"""The examples of a command line: told all together, and each again where its command is explained."""


def examples_of(command: str, examples: str) -> str:
    """Return what of ``examples``, one command a line, shows ``command``; empty when nothing does."""
    shown = [
        line for line in examples.splitlines() if line.strip().startswith(f"{command} ") or line.strip() == command
    ]
    return "\n".join(["examples:", *shown]) if shown else ""
