"""``python -m edge_agent`` is ``alarmcast-edge``."""

import sys

from edge_agent.undisturbed import undisturbed


def main() -> int:
    """Run the command line."""
    with undisturbed():
        from edge_agent.cli import main as command  # noqa: PLC0415
    return command()


if __name__ == "__main__":
    sys.exit(main())
