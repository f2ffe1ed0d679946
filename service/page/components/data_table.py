"""Tables of many rows as plain data; the browser sorts and shortens them."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from nicegui import ui
from nicegui.events import GenericEventArguments

from service.page.components.blocks import severity_sign, severity_text
from service.page.texts import text as text_of
from wire.timestamps import isoformat

_FORMAT = {"alarmcast-format": str(Path(__file__).parent.parent / "format")}
Cell = str | int | float | dict[str, Any] | None


@dataclass(frozen=True)
class Column:
    """A column; one without a title holds action buttons."""

    title: str
    number: bool = False
    hint: str = ""


@dataclass(frozen=True)
class Row:
    """A row and the key that its actions report."""

    key: str
    cells: list[Cell]


class DataTable(ui.element, component="data_table.js", esm=_FORMAT):
    """A table; ``order`` is the index of a column and whether it sorts descending."""

    def __init__(
        self,
        columns: Sequence[Column],
        *,
        label: str,
        zone: str = "UTC",
        first: int = 20,
        order: tuple[int, bool] | None = None,
        sortable: bool = True,
    ) -> None:
        super().__init__()
        self._props["columns"] = [asdict(column) for column in columns]
        self._props["rows"] = []
        self._props["label"] = label
        self._props["zone"] = zone
        self._props["first"] = first
        self._props["sortable"] = sortable
        if order is not None:
            self._props["order"] = {"index": order[0], "descending": order[1]}

    def show(self, rows: Sequence[Row], *, empty: str = "") -> None:
        """Show these rows instead, or ``empty`` without rows; the reader's order and length stay."""
        shown = {"rows": [asdict(row) for row in rows], "empty": empty}
        if any(self._props.get(name) != value for name, value in shown.items()):
            self._props.update(shown)
            self.update()

    def choose(self, key: str | None) -> None:
        """Mark the row of this key."""
        self._props["chosen"] = key
        self.update()

    def on_action(self, run: Callable[[str, str], Awaitable[None]]) -> None:
        """Call ``run(action, key)`` when the button of an action is pressed."""

        async def pressed(event: GenericEventArguments) -> None:
            await run(event.args["name"], event.args["key"])

        self.on("action", pressed)


def link(text: str, address: str, more: str | None = None) -> dict[str, Any]:
    """Return a cell with a link; ``more`` is shown below it in small type."""
    return {"text": text, "href": address} | ({"more": more} if more else {})


def moment(at: datetime | None, zone: str | None = None) -> dict[str, Any] | None:
    """Return a cell with a moment, in the table's zone unless another is named."""
    if at is None:
        return None
    return {"at": isoformat(at)} | ({"zone": zone} if zone else {})


def date_cell(at: datetime | None, zone: str | None = None, *, until: bool = False) -> dict[str, Any] | None:
    """Return a cell with a moment and its year; ``until`` marks it as expired once it is past."""
    cell = moment(at, zone)
    return None if cell is None else cell | {"year": True} | ({"until": True} if until else {})


def figure(value: float | None, text: str) -> dict[str, Any] | None:
    """Return a cell that sorts by its value and shows its text."""
    return None if value is None else {"text": text, "sort": value}


def tag_cell(
    text: str, sign: str, tone: str, rank: float | None = None, title: str | None = None
) -> dict[str, Any]:
    """Return a cell with a tag that sorts by ``rank``."""
    cell: dict[str, Any] = {"text": text, "sign": sign, "tone": tone, "tag": True}
    return cell | ({} if rank is None else {"sort": rank}) | ({"title": title} if title else {})


def alarm(code: int, text: str, severity: str | None) -> dict[str, Any]:
    """Return a cell with an alarm: the sign of its severity, its text, its code."""
    cell: dict[str, Any] = {"text": text, "more": text_of("common.table.code", code=code), "sort": code}
    if severity:
        cell |= {
            "sign": severity_sign(severity),
            "tone": f"ac-sev-{severity}",
            "title": severity_text(severity),
        }
    return cell


def actions_cell(*named: tuple[str, str, str]) -> dict[str, Any]:
    """Return a cell with buttons, each with a name, a text and an accessible label."""
    return {"actions": [{"name": name, "text": text, "label": label} for name, text, label in named]}
