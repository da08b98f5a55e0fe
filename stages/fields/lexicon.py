"""How the rules write their word lists: one language a line, alternatives between bars."""

import re


def words(text: str) -> str:
    """Return a group of the alternatives in ``text``; blanks around bars and line ends mean nothing."""
    parts = (part.strip() for part in text.replace("\n", "|").split("|"))
    return f"(?:{'|'.join(part for part in parts if part)})"


def pattern(text: str) -> re.Pattern[str]:
    """Compile a pattern that takes no notice of case."""
    return re.compile(text, re.IGNORECASE)
