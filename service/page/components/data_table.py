"""Tables of many rows as plain data; sorted and shortened in the browser, so that a large fleet costs little."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from nicegui import ui
from nicegui.events import GenericEventArguments

from service.page.components.blocks import SIGNS
from wire.timestamps import isoformat

_FORMAT = {"alarmcast-format": str(Path(__file__).parent.parent / "format")}
Cell = str | int | float | dict[str, Any] | None


@dataclass(frozen=True)
class Column:
    """A column; one without a title holds what can be done."""

    title: str
    number: bool = False
    hint: str = ""


@dataclass(frozen=True)
class Row:
    """A row and the key by which its deeds name it."""

    key: str
    cells: list[Cell]


class DataTable(ui.element, component="data_table.js", esm=_FORMAT):
    """A table; ``order`` is a column's place, negative numbers never: say ``down`` for the largest first."""

    def __init__(
        self,
        columns: Sequence[Column],
        rows: Sequence[Row],
        *,
        label: str,
        zone: str = "UTC",
        first: int = 20,
        order: tuple[int, bool] | None = None,
        sortable: bool = True,
    ) -> None:
        super().__init__()
        self._props["columns"] = [asdict(column) for column in columns]
        self._props["rows"] = [asdict(row) for row in rows]
        self._props["label"] = label
        self._props["zone"] = zone
        self._props["first"] = first
        self._props["sortable"] = sortable
        if order is not None:
            self._props["order"] = {"place": order[0], "down": order[1]}

    def show(self, rows: Sequence[Row]) -> None:
        """Show these rows instead; order and length stay as the reader has set them."""
        told = [asdict(row) for row in rows]
        if told != self._props["rows"]:
            self._props["rows"] = told
            self.update()

    def choose(self, key: str | None) -> None:
        """Mark the row of this key."""
        self._props["chosen"] = key
        self.update()

    def on_action(self, done: Callable[[str, str], Awaitable[None]]) -> None:
        """Call ``done(deed, key)`` when somebody presses a deed's button."""

        async def pressed(event: GenericEventArguments) -> None:
            await done(event.args["name"], event.args["key"])

        self.on("deed", pressed)


def link(text: str, address: str, more: str | None = None) -> dict[str, Any]:
    """Return a cell that leads somewhere; ``more`` stands small below."""
    return {"text": text, "href": address} | ({"more": more} if more else {})


def moment(at: datetime | None, zone: str | None = None) -> dict[str, Any] | None:
    """Return a cell with a moment, in the table's zone unless another is named."""
    if at is None:
        return None
    return {"at": isoformat(at)} | ({"zone": zone} if zone else {})


def date_cell(at: datetime | None, zone: str | None = None, *, until: bool = False) -> dict[str, Any] | None:
    """Return a cell with a moment and its year; ``until`` lets it say whether it is over."""
    cell = moment(at, zone)
    return None if cell is None else cell | {"year": True} | ({"until": True} if until else {})


def figure(value: float | None, text: str) -> dict[str, Any] | None:
    """Return a cell that is sorted by its figure and read as its text."""
    return None if value is None else {"text": text, "sort": value}


def tag_cell(
    text: str, sign: str, tone: str, rank: float | None = None, title: str | None = None
) -> dict[str, Any]:
    """Return a cell with a tag; ``rank`` says how it sorts."""
    told: dict[str, Any] = {"text": text, "sign": sign, "tone": tone, "tag": True}
    return told | ({} if rank is None else {"sort": rank}) | ({"title": title} if title else {})


def alarm(code: int, text: str, severity: str | None) -> dict[str, Any]:
    """Return a cell with an alarm: its severity's sign, its text, its code."""
    told: dict[str, Any] = {"text": text, "more": f"code {code}", "sort": code}
    if severity:
        told |= {"sign": SIGNS.get(severity, "◆"), "tone": f"ac-sev-{severity}", "title": f"{severity} severity"}
    return told


def actions_cell(*named: tuple[str, str, str]) -> dict[str, Any]:
    """Return a cell with buttons, each a name, what stands on it, and what it does in a few words."""
    return {"deeds": [{"name": name, "text": text, "label": label} for name, text, label in named]}
