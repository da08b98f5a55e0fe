"""Where in the world a document is from, as far as it matters for how its dates are written."""

import re
from typing import Final

from stages.fields.lexicon import words

_STATES: Final = (
    "A[KLRZ]|C[AOT]|D[CE]|FL|GA|HI|I[ADLN]|K[SY]|LA|M[ADEINOST]|N[CDEHJMVY]|O[HKR]|PA|RI|S[CD]|T[NX]|UT|V[AT]|W[AIVY]"
)
_STATE_NAMES: Final = words(
    r"""
    Alabama | Alaska | Arizona | Arkansas | California | Colorado | Connecticut | Delaware | Florida | Hawaii | Idaho
    Illinois | Indiana | Iowa | Kansas | Kentucky | Louisiana | Maine | Maryland | Massachusetts | Michigan | Minnesota
    Mississippi | Missouri | Montana | Nebraska | Nevada | New Hampshire | New Jersey | New Mexico | New York
    North Carolina | North Dakota | Ohio | Oklahoma | Oregon | Pennsylvania | Rhode Island | South Carolina
    South Dakota | Tennessee | Texas | Utah | Vermont | Virginia | Washington | West Virginia | Wisconsin | Wyoming
    """
)
_UNITED_STATES: Final = re.compile(
    rf"\b(?:United States|U\.?S\.?A\b|(?:{_STATES}|{_STATE_NAMES}),? \d{{5}}(?:-\d{{4}})?\b"
    rf"|(?:State|Commonwealth) of {_STATE_NAMES}\b|an? {_STATE_NAMES} (?:corporation|limited|company|LLC|partnership))"
)


def names_united_states(text: str) -> bool:
    """Say whether ``text`` has a place in the United States, where the month is written before the day."""
    return _UNITED_STATES.search(text) is not None
