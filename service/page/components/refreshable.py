"""A place on a page that is drawn anew when what it shows has changed, and left alone otherwise."""

from collections.abc import Callable
from typing import Generic, TypeVar

from nicegui import html

T = TypeVar("T")


class Refreshable(Generic[T]):
    """Draws with ``draw``; what is equal to what is shown is not drawn again, so that nobody loses the focus."""

    def __init__(self, draw: Callable[[T], None], *, style: str = "ac-renewed") -> None:
        self._draw = draw
        self._place = html.div().classes(style)
        self._shown: T | None = None

    def show(self, told: T) -> None:
        """Show this from now on."""
        if self._shown is not None and told == self._shown:
            return
        self._shown = told
        self._place.clear()
        with self._place:
            self._draw(told)
