"""Boxes of turned pages, brought back to the page as it is shown."""

import pytest

from stages.fields.engine import normalize
from stages.fields.turning import turn_back

WORDS = [["Total:", 0.1, 0.2, 0.3, 0.22, 0.9, 0], ["529.87", 0.6, 0.2, 0.7, 0.22, 0.9, 0]]


@pytest.mark.parametrize(
    ("rotation", "shown"),
    [
        (0, [0.6, 0.2, 0.7, 0.22]),
        (90, [0.2, 0.3, 0.22, 0.4]),
        (180, [0.3, 0.78, 0.4, 0.8]),
        (270, [0.78, 0.6, 0.8, 0.7]),
    ],
)
def test_a_box_lies_on_the_page_as_it_came(rotation, shown):
    """Who is shown where a value stands looks at the page and not at what the engine made of it."""
    page = {"number": 4, "source": "ocr", "text": "Total: 529.87", "confidence": 0.9, "rotation": rotation}

    done = normalize({"document": {"pages": [{**page, "words": WORDS}]}, "kind": "invoice"})

    total = done["invoice"]["total"]
    assert (total["value"], total["page"]) == ("529.87", 4)
    assert total["box"] == pytest.approx(shown)


def test_only_boxes_of_turned_pages_are_changed():
    """One sheet of a letter lay on its side."""
    result = {
        "parties": [{"page": 1, "box": [0.1, 0.2, 0.3, 0.4]}, {"page": 2, "box": [0.1, 0.2, 0.3, 0.4]}],
        "title": {"page": 2, "box": None},
        "term": None,
    }

    turn_back(result, [{"number": 1, "rotation": 0}, {"number": 2, "rotation": 180}, {"number": 3}])

    assert result["parties"][0]["box"] == [0.1, 0.2, 0.3, 0.4]
    assert result["parties"][1]["box"] == pytest.approx([0.7, 0.6, 0.9, 0.8])
