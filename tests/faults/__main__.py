"""``python -m tests.faults``: play the matrix and tell what was lost."""

import sys

from tests.faults.command import main

if __name__ == "__main__":
    sys.exit(main())
