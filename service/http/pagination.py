"""Pagination of lists by id."""

from collections.abc import Callable
from typing import Annotated, TypeVar

from fastapi import Path, Query

WORD, HALF_WORD = 2**63 - 1, 2**31 - 1  # of PostgreSQL's bigint and integer

Number = Annotated[int, Path(ge=1, le=HALF_WORD, description="Its id.", examples=[1])]
Limit = Annotated[int, Query(ge=1, le=1000, description="Maximum number of items.")]
CursorQuery = Annotated[int | None, Query(ge=1, le=HALF_WORD, description="`next` of the page before.")]
LongCursorQuery = Annotated[int | None, Query(ge=1, le=WORD, description="`next` of the page before.")]
ActiveOnly = Annotated[bool, Query(description="Only those that are active now.")]

ItemT = TypeVar("ItemT")


def paginate(items: list[ItemT], limit: int, item_id: Callable[[ItemT], int]) -> tuple[list[ItemT], int | None]:
    """Return a page of ``items``, which were queried with one more than the limit, and the next cursor."""
    page = items[:limit]
    return page, item_id(page[-1]) if len(items) > limit else None
