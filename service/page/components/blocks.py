"""Blocks that every page is built of: panels, tables, stats, tags, timestamps, empty states."""

from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Protocol
from zoneinfo import ZoneInfo

from nicegui import html
from nicegui.element import Element

from service.page.texts import text
from wire.zones import zone_word

Cell = str | int | float | Callable[[], object] | None
Stat = str | int | float | None
PageButton = tuple[str, Callable[[], Awaitable[None]], bool]  # text, action, enabled
NOTHING = "\N{EN DASH}"  # where there is no value
_SEVERITY_SIGNS = {"high": "▲", "medium": "◆", "low": "●"}


@contextmanager
def panel(title: str, *, note: str = "", wide: bool = False) -> Iterator[Element]:
    """Draw a panel with its heading and a short ``note`` beside it."""
    with html.section().classes("ac-panel" + (" ac-wide" if wide else "")) as section:
        with html.header():
            html.h2(title)
            if note:
                html.span(note).classes("quiet small")
        yield section


def table(head: Sequence[str], rows: Iterable[Sequence[Cell]], *, numbers: Sequence[int] = (), label: str) -> None:
    """Draw a table; columns in ``numbers`` are right-aligned, and a cell may be a function that draws it."""
    # A scrolling area must be reachable by keyboard.
    reachable = {"tabindex": "0", "role": "region", "aria-label": label}
    with html.div(**reachable).classes("ac-scroll"), html.table().classes("ac-table"):
        with html.thead(), html.tr():
            for index, name in enumerate(head):
                html.th(name, scope="col").classes("number" if index in numbers else "")
        with html.tbody():
            for row in rows:
                with html.tr():
                    for index, cell in enumerate(row):
                        _cell(cell, number=index in numbers)


def _cell(cell: Cell, *, number: bool) -> None:
    style = "number" if number else ""
    if callable(cell):
        with html.td().classes(style):
            cell()
    else:
        html.td(NOTHING if cell is None else str(cell)).classes(style)


def stats(named: Mapping[str, Stat | tuple[Stat, str]]) -> None:
    """Draw values with their names; a note is shown below its value."""
    with html.dl().classes("ac-stats"):
        for name, stat in named.items():
            value, note = stat if isinstance(stat, tuple) else (stat, "")
            with html.div():
                html.dt(name)
                with html.dd(NOTHING if value is None else str(value)):
                    if note:
                        html.br()
                        html.small(note)


def empty_state(title: str, *lines: str, code: str | None = None) -> None:
    """Draw what a place will show and how to fill it."""
    with html.div().classes("ac-empty-state"):
        html.h2(title)
        for line in lines:
            html.p(line)
        if code:
            html.code(code)


def empty_message(message: str) -> None:
    """Draw a message in an empty place; nothing for an empty message."""
    if message:
        html.p(message).classes("ac-empty")


def severity_sign(name: str) -> str:
    """Return the sign that is shown beside the colour of a severity."""
    return _SEVERITY_SIGNS.get(name, "◆")


def severity_text(name: str) -> str:
    """Return a severity as a text; one that is not known as it is."""
    return text(f"common.severity.{name}") if name in _SEVERITY_SIGNS else name


def timestamp(moment: datetime | None, zone: str) -> None:
    """Draw a moment in plant time; UTC is shown on hover."""
    if moment is None:
        html.span(NOTHING)
        return
    html.time(plant_time(moment, zone), datetime=moment.isoformat(), title=f"{moment:%Y-%m-%d %H:%M:%S} UTC")


def plant_time(moment: datetime, zone: str) -> str:
    """Return a moment in plant time, with the zone's name."""
    return f"{moment.astimezone(ZoneInfo(zone)):%a %d %b %H:%M} {zone_word(moment, zone)}"


class Named(Protocol):
    """Anything with the site and name of a machine."""

    site: str
    name: str


def machine_title(machine: Named) -> str:
    """Return the name of a machine with its site, unless the name contains the site."""
    if machine.site.casefold() in machine.name.casefold():
        return machine.name
    return f"{machine.site} / {machine.name}"


def percent(share: float | None) -> str:
    """Return a share as a percentage."""
    if share is None:
        return NOTHING
    if 0 < share < 0.005:  # noqa: PLR2004 - half a percent
        return text("common.percent.small")
    return text("common.percent", value=f"{100 * share:.0f}")


def number(value: float | None, digits: int = 2) -> str:
    """Return a value with so many digits, or a dash without a value."""
    return NOTHING if value is None else f"{value:,.{digits}f}"


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
