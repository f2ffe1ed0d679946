"""The dialog that asks before something is done: what will happen, what must be told for it, and why."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from nicegui import ui

from wire.rest.problems import FieldError

_FIELDS = {"alarmcast-fields": str(Path(__file__).parent / "fields")}


@dataclass(frozen=True)
class Field:
    """What must be told for a deed: a line of some ``kind`` of input, a choice among options, or sites.

    ``more`` goes to the input as its attributes. Of sites, ``value`` None is every site, which is offered only
    if ``every`` says so.
    """

    name: str
    label: str
    kind: str = "text"
    value: Any = ""
    options: Sequence[Any] = ()
    hint: str = ""
    every: bool = False
    more: dict[str, Any] = field(default_factory=dict)


class ConfirmDialog(ui.element, component="confirm_dialog.js", esm=_FIELDS):
    """Asks before a deed is done; emits ``deed`` with key, about, reason, force and what was typed, by fields."""

    def ask(  # noqa: PLR0913 - a deed has as many sides as people must know of
        self,
        key: str,
        about: str,
        *,
        title: str,
        lines: Sequence[str],
        deed: str,
        fields: Sequence[Field] = (),
        reasons: Sequence[str] = (),
        force: str | None = None,
        needs_reason: bool = True,
    ) -> None:
        """Open the dialog; ``force`` is what the reader must tick first."""
        self.run_method(
            "ask",
            {
                "key": key,
                "about": about,
                "title": title,
                "lines": list(lines),
                "deed": deed,
                "fields": [asdict(one) for one in fields],
                "reasons": list(reasons),
                "force": force,
                "needs_reason": needs_reason,
            },
        )

    def refuse(self, detail: str, errors: Sequence[FieldError] = ()) -> None:
        """Say in the open dialog why it was not done, at the fields that ``errors`` name."""
        self.run_method("refuse", detail, [one.model_dump() for one in errors])

    def close(self) -> None:
        """Close it: done."""
        self.run_method("close")
