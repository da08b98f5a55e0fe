"""Extracted pages as extract hands them over, drawn from lines of text with columns."""

from typing import Any

CHARACTER = 0.008
LINE = 0.02
HEIGHT = 0.012


def text_page(text: str, number: int = 1) -> dict[str, Any]:
    """Return a page of plain text, which has no words."""
    return {"number": number, "source": "text", "text": text, "confidence": None, "rotation": 0, "words": []}


def drawn_page(*lines: str, number: int = 1, confidence: float | None = None) -> dict[str, Any]:
    """Return a page whose words stand where they stand in ``lines``, one character being one width."""
    words = []
    for index, line in enumerate(lines):
        column = 0
        for part in line.split(" "):
            if part:
                x0, y0 = column * CHARACTER, 0.02 + index * LINE
                words.append([part, x0, y0, x0 + len(part) * CHARACTER, y0 + HEIGHT, confidence or 1.0, index])
            column += len(part) + 1
    source = "text_layer" if confidence is None else "ocr"
    return {
        "number": number,
        "source": source,
        "text": "\n".join(lines),
        "confidence": confidence,
        "rotation": 0,
        "words": words,
    }


def document(*pages: dict[str, Any], attachments: dict[str, str] | None = None) -> dict[str, Any]:
    """Return an extracted document."""
    found = [{"name": name, "xml": xml} for name, xml in (attachments or {}).items()]
    return {"pages": list(pages), "attachments": found}
