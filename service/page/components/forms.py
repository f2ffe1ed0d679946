"""Forms of native fields: what was typed stays in the browser until it is sent, so that nothing can lose it."""

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
Typed = dict[str, str]


@contextmanager
def form(taken: Callable[[Typed], Awaitable[None]], *, deed: str) -> Iterator[None]:
    """Draw a form around what is drawn inside; ``taken`` gets it all at once, and it is emptied if that went well.

    What the API refuses is shown in its own words, and the fields stay as they are.
    """

    async def send(event: GenericEventArguments) -> None:
        typed = {name: text.strip() for name, text in event.args.items()}
        with show_api_errors():
            await taken(typed)
            drawn.run_method("reset")

    drawn = html.form().classes("ac-form").on("submit", send, js_handler=_SEND)
    with drawn:
        yield
        html.button(deed, type="submit").classes("ac-button ac-main-deed")


def entry(name: str, title: str, *, kind: str = "text", required: bool = False, **more: str | int) -> Element:
    """Draw a field of one line."""
    with html.label().classes("ac-entry"):
        html.span(title)
        told = {"type": kind, "name": name, **more} | ({"required": True} if required else {})
        field: Element = html.input_(**told).classes("ac-field")
        return field


def choice(name: str, title: str, options: Iterable[tuple[str, str]], chosen: str = "") -> Element:
    """Draw a choice among options, each a value and what people read."""
    with html.label().classes("ac-entry"):
        html.span(title)
        return select(name, options, chosen)


def select(name: str, options: Iterable[tuple[str, str]], chosen: str = "") -> Element:
    """Draw the bare choice, for where its title stands elsewhere."""
    drawn: Element = html.select(name=name).classes("ac-field")
    with drawn:
        for value, text in options:
            option = html.option(text, value=value)
            if value == chosen:
                option.props("selected")
    return drawn
