"""Forms of native fields; typed values stay in the browser until they are submitted."""

from collections.abc import Awaitable, Callable, Iterable, Iterator
from contextlib import contextmanager

from nicegui import html
from nicegui.element import Element
from nicegui.events import GenericEventArguments

from service.page.layout import show_api_errors

_SEND = """(event) => {
    event.preventDefault();
    emit(Object.fromEntries(new FormData(event.target)));
}"""
EMIT_VALUE = "(event) => emit(event.target.value)"
Typed = dict[str, str]


@contextmanager
def form(submit: Callable[[Typed], Awaitable[None]], *, button: str) -> Iterator[None]:
    """Draw a form around its fields; ``submit`` gets their values, and the form is reset if it succeeds.

    An API error is shown, and the fields keep their values.
    """

    async def send(event: GenericEventArguments) -> None:
        typed = {name: value.strip() for name, value in event.args.items()}
        with show_api_errors():
            await submit(typed)
            drawn.run_method("reset")

    drawn = html.form().classes("ac-form").on("submit", send, js_handler=_SEND)
    with drawn:
        yield
        html.button(button, type="submit").classes("ac-button ac-primary")


def entry(name: str, title: str, *, kind: str = "text", required: bool = False, **more: str | int) -> Element:
    """Draw a one-line field."""
    with html.label().classes("ac-entry"):
        html.span(title)
        attributes = {"type": kind, "name": name, **more} | ({"required": True} if required else {})
        field: Element = html.input_(**attributes).classes("ac-field")
        return field


def choice(name: str, title: str, options: Iterable[tuple[str, str]], chosen: str = "") -> Element:
    """Draw a choice among options, each a value and its text."""
    with html.label().classes("ac-entry"):
        html.span(title)
        return select(name, options, chosen)


def chooser(
    name: str,
    title: str,
    options: Iterable[tuple[str, str]],
    chosen: str,
    on_change: Callable[[GenericEventArguments], object],
) -> None:
    """Draw a choice that takes effect at once."""
    with html.label():
        html.span(title)
        select(name, options, chosen).on("change", on_change, js_handler=EMIT_VALUE)


def select(name: str, options: Iterable[tuple[str, str]], chosen: str = "") -> Element:
    """Draw a choice without a title."""
    drawn: Element = html.select(name=name).classes("ac-field")
    with drawn:
        for value, text in options:
            option = html.option(text, value=value)
            if value == chosen:
                option.props("selected")
    return drawn
