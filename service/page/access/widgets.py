"""Small parts that several panels of this page share."""

from collections.abc import Awaitable, Callable

from nicegui import html

Way = tuple[str, Callable[[], Awaitable[None]], bool]  # its word, where it leads, and whether there is anything


def add_button(text: str, ask: Callable[[], None]) -> None:
    """Draw the button below a table that asks for one more."""
    with html.div().classes("ac-tools"):
        html.button(text, type="button").classes("ac-button").on("click", ask)


def calm(sentence: str) -> None:
    """Say why there is nothing to be seen, if so."""
    if sentence:
        html.p(sentence).classes("ac-empty")


def turn_pages(back: Way, on: Way, here: str) -> None:
    """Draw the ways to the pages before and after this one, and where one is."""
    with html.div().classes("ac-tools"):
        for text, turn, can in (back, on):
            button = html.button(text, type="button").classes("ac-button ac-small").on("click", turn)
            if not can:
                button.props("disabled")
        html.span(here).classes("quiet small")
