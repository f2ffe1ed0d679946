"""``python -m tests.fuzz``: play bad input until something gives."""

import sys

from tests.fuzz.command import main

if __name__ == "__main__":
    sys.exit(main())
