"""What lists that come in pages by number have in common."""

from collections.abc import Callable
from typing import Annotated, TypeVar

from fastapi import Path, Query

WORD, HALF_WORD = 2**63 - 1, 2**31 - 1  # what PostgreSQL can compare a long number with, and a short one

Number = Annotated[int, Path(ge=1, le=HALF_WORD, description="Its number.", examples=[1])]
Limit = Annotated[int, Query(ge=1, le=1000, description="How many at most.")]
CursorQuery = Annotated[int | None, Query(ge=1, le=HALF_WORD, description="`next` of the page before.")]
LongCursorQuery = Annotated[int | None, Query(ge=1, le=WORD, description="`next` of the page before.")]
ActiveOnly = Annotated[bool, Query(description="Only those that hold now.")]

One = TypeVar("One")


def paginate(found: list[One], limit: int, number: Callable[[One], int]) -> tuple[list[One], int | None]:
    """Cut what was found with one more than the limit down to a page, and return the cursor of the next."""
    shown = found[:limit]
    return shown, number(shown[-1]) if len(found) > limit else None
