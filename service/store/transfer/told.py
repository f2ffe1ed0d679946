"""What a copy says of itself while it runs."""

from enum import StrEnum
from typing import Protocol


class Stage(StrEnum):
    """What is being done to a table."""

    COPYING = "Copying"
    CHECKING = "Checking"


class Told(Protocol):
    """Hears how far a table is: so many of so many rows."""

    def __call__(self, stage: Stage, table: str, rows: int, of: int, /) -> None:
        """Hear it."""
