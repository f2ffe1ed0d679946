"""A part of a page that is redrawn only when its value has changed."""

from collections.abc import Callable
from typing import Generic, TypeVar

from nicegui import html

T = TypeVar("T")


class Refreshable(Generic[T]):
    """Draws a value with ``draw``; an equal value is not drawn again, so that the focus is not lost."""

    def __init__(self, draw: Callable[[T], None], *, style: str = "ac-refreshable") -> None:
        self._draw = draw
        self._container = html.div().classes(style)
        self._shown: T | None = None

    def show(self, value: T) -> None:
        """Show a value from now on."""
        if self._shown is not None and value == self._shown:
            return
        self._shown = value
        self._container.clear()
        with self._container:
            self._draw(value)
