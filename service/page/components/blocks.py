"""Blocks that every page is built of: panels, tables, figures, tags, moments, and the words for an empty place."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Protocol
from zoneinfo import ZoneInfo

from nicegui import html

from wire.zones import zone_word

Cell = str | int | float | Callable[[], object] | None
Stat = str | int | float | None
NOTHING = "\N{EN DASH}"  # where there is no figure
SIGNS = {"high": "▲", "medium": "◆", "low": "●"}  # beside every colour


@contextmanager
def panel(title: str, *, note: str = "", wide: bool = False) -> Iterator[None]:
    """Draw a panel with its heading; ``note`` says in a few words how to read it."""
    with html.section().classes("ac-panel" + (" ac-wide" if wide else "")):
        with html.header():
            html.h2(title)
            if note:
                html.span(note).classes("quiet small")
        yield


def table(head: Sequence[str], rows: Iterable[Sequence[Cell]], *, numbers: Sequence[int] = (), label: str) -> None:
    """Draw a table; the columns in ``numbers`` stand right, and a cell may be a function that draws itself."""
    # A part that scrolls must be reachable by keyboard.
    reachable = {"tabindex": "0", "role": "region", "aria-label": label}
    with html.div(**reachable).classes("ac-scroll"), html.table().classes("ac-table"):
        with html.thead(), html.tr():
            for place, name in enumerate(head):
                html.th(name, scope="col").classes("number" if place in numbers else "")
        with html.tbody():
            for row in rows:
                with html.tr():
                    for place, cell in enumerate(row):
                        _cell(cell, number=place in numbers)


def _cell(cell: Cell, *, number: bool) -> None:
    style = "number" if number else ""
    if callable(cell):
        with html.td().classes(style):
            cell()
    else:
        html.td(NOTHING if cell is None else str(cell)).classes(style)


def stats(named: Mapping[str, Stat | tuple[Stat, str]], notes: Mapping[str, str] | None = None) -> None:
    """Draw figures with their names; a note stands below a figure, beside its value or in ``notes``."""
    with html.dl().classes("ac-figures"):
        for name, stat in named.items():
            value, note = stat if isinstance(stat, tuple) else (stat, (notes or {}).get(name, ""))
            with html.div():
                html.dt(name)
                with html.dd(NOTHING if value is None else str(value)):
                    if note:
                        html.br()
                        html.small(note)


def empty_state(title: str, *lines: str, code: str | None = None) -> None:
    """Say in an empty place what belongs there and how it gets there."""
    with html.div().classes("ac-teach"):
        html.h2(title)
        for line in lines:
            html.p(line)
        if code:
            html.code(code)


def empty_message(message: str) -> None:
    """Draw a short message in an empty list; draw nothing if it is empty."""
    if message:
        html.p(message).classes("ac-calm")


def severity(word: str) -> None:
    """Draw a severity with its sign."""
    with html.span().classes(f"ac-tag ac-sev-{word}"):
        html.span(SIGNS.get(word, "◆")).props('aria-hidden="true"')
        html.span(word)


def timestamp(moment: datetime | None, zone: str) -> None:
    """Draw a moment in plant time; UTC shows on hover."""
    if moment is None:
        html.span(NOTHING)
        return
    html.time(plant_time(moment, zone), datetime=moment.isoformat(), title=f"{moment:%Y-%m-%d %H:%M:%S} UTC")


def plant_time(moment: datetime, zone: str) -> str:
    """Return a moment in plant time, with the zone's name."""
    return f"{moment.astimezone(ZoneInfo(zone)):%a %d %b %H:%M} {zone_word(moment, zone)}"


class Named(Protocol):
    """Whatever stands for a machine."""

    site: str
    name: str


def machine_title(machine: Named) -> str:
    """Return what a machine is called beside machines of other sites: with its site, unless its name says it."""
    if machine.site.casefold() in machine.name.casefold():
        return machine.name
    return f"{machine.site} / {machine.name}"


def percent(share: float | None) -> str:
    """Return a share as people read it."""
    if share is None:
        return NOTHING
    return "<1 %" if 0 < share < 0.005 else f"{share:.0%}".replace("%", " %")  # noqa: PLR2004 - half a percent


def number(value: float | None, digits: int = 2) -> str:
    """Return a figure with so many digits, or a dash where there is none."""
    return NOTHING if value is None else f"{value:,.{digits}f}"
