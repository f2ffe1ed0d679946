"""``python -m edge_agent`` is ``alarmcast-edge``."""

import sys

from wire.fast_start import gc_disabled


def main() -> int:
    """Run the command line."""
    with gc_disabled():
        from edge_agent.cli import main as command  # noqa: PLC0415
    return command()


if __name__ == "__main__":
    sys.exit(main())
