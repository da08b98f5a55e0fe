"""``python -m dlq_tools``: the same as ``docstage-dlq``."""

import sys

from dlq_tools.cli import main

if __name__ == "__main__":
    sys.exit(main())
