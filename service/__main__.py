"""``alarmcast``: the service's command line, with a sentence where an edge-only install cannot follow."""

import os
import sys


def main() -> None:
    """Run the command line."""
    # One thread for numpy's arithmetic, unless set otherwise: at our sizes a second one gains nothing, and waits
    # if the other core is busy. Must be set before numpy is loaded.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    try:
        from service.cli import run  # noqa: PLC0415 - what it imports may be missing
    except ModuleNotFoundError as error:
        sentence = f"alarmcast: the service is not installed here ({error.name} is missing): "
        sys.exit(sentence + "pip install 'alarmcast[service]'")
    run()


if __name__ == "__main__":
    main()
