"""Puts words together that are set with space between their letters, as headings are: I N V O I C E."""

from collections.abc import Iterator, Sequence
from itertools import groupby, pairwise
from statistics import fmean, median
from typing import Final

from stages.adapters.pages import Word

# No language has so many words of one letter in a row.
_LEAST_LETTERS: Final = 4
# Wider apart, in parts of a letter's width, are columns.
_WIDEST: Final = 1.0
# How much wider than between letters it is between words.
_TIMES_USUAL: Final = 1.6


def joined(words: Sequence[Word]) -> tuple[Word, ...]:
    """Return the words with each run of spaced letters as the words that they spell."""
    result: list[Word] = []
    for (_, single), found in groupby(words, key=lambda word: (word[6], _is_letter(word))):
        run = list(found)
        result.extend(_spelled(run) if single else run)
    return tuple(result)


def _is_letter(word: Word) -> bool:
    """Say whether a word is one letter of a script whose words are longer; others may have words of one sign."""
    text = word[0]
    return len(text) == 1 and text.lower() != text.upper()


def _spelled(letters: list[Word]) -> Iterator[Word]:
    """Yield the words that a run of letters on one line spells; the letters where it is no such run."""
    gaps = [right[1] - left[3] for left, right in pairwise(letters)]
    width = fmean(letter[3] - letter[1] for letter in letters)
    if len(letters) < _LEAST_LETTERS or not 0 < (usual := median(gaps)) <= width * _WIDEST:
        yield from letters
        return
    start = 0
    for end, gap in enumerate([*gaps, float("inf")], 1):
        if not 0 <= gap <= usual * _TIMES_USUAL:
            yield _word(letters[start:end])
            start = end


def _word(letters: list[Word]) -> Word:
    """Return one word in the place of its letters."""
    texts, lefts, tops, rights, bottoms, *_ = zip(*letters, strict=True)
    return ("".join(texts), min(lefts), min(tops), max(rights), max(bottoms), letters[0][5], letters[0][6])
