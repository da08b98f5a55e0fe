"""Makes any text fit for PostgreSQL and for people."""

from typing import Final

# PDFium marks a hyphen at a line's end with U+0002; both kinds of line break become one.
_TABLE: Final = {
    **dict.fromkeys((*range(0x20), *range(0x7F, 0xA0), 0xFFFE, 0xFFFF, 0xFEFF), None),
    0x02: "-",
    0x09: "\t",
    0x0A: "\n",
    0x0B: "\n",
    0x0C: "\n",
    0x85: "\n",
    0xA0: " ",
    0xAD: None,
    0x2028: "\n",
    0x2029: "\n",
}


def clean(text: str) -> str:
    """Return ``text`` without NUL, controls, lone surrogates and invisible marks, every break a newline."""
    if text.isascii() and text.isprintable():
        return text
    text = text.replace("\r\n", "\n").replace("\r", "\n").translate(_TABLE)
    try:
        text.encode()
    except UnicodeEncodeError:
        # Surrogate pairs that arrived as two characters become one; lone ones are beyond repair.
        text = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text
