"""The local launcher: private services and processes for ``make run``, the tests and CI.

Standard library only: it must run on a machine that has nothing but Python, since it is what installs the rest.
"""

import sys

if sys.version_info < (3, 11):  # noqa: UP036 - says so in place of a traceback
    sys.exit("Docstage needs Python 3.11 or newer")
