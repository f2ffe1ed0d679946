"""Widgets that several panels of this page share."""

from collections.abc import Awaitable, Callable

from nicegui import html

PageButton = tuple[str, Callable[[], Awaitable[None]], bool]  # text, action, enabled


def add_button(title: str, ask: Callable[[], None]) -> None:
    """Draw the button below a table that opens the dialog for a new row."""
    with html.div().classes("ac-tools"):
        html.button(title, type="button").classes("ac-button").on("click", ask)


def pagination(previous: PageButton, following: PageButton, position: str) -> None:
    """Draw the buttons to the previous and the next page, and the position."""
    with html.div().classes("ac-tools"):
        for title, turn, enabled in (previous, following):
            button = html.button(title, type="button").classes("ac-button ac-small").on("click", turn)
            if not enabled:
                button.props("disabled")
        html.span(position).classes("quiet small")
