"""What a copy says of itself while it runs."""

from enum import StrEnum
from typing import Protocol


class CopyStage(StrEnum):
    """What is being done to a table."""

    COPYING = "Copying"
    CHECKING = "Checking"


class CopyProgress(Protocol):
    """Hears how far a table is: so many of so many rows."""

    def __call__(self, stage: CopyStage, table: str, rows: int, of: int, /) -> None:
        """Hear it."""
