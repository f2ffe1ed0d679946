"""The dialog that asks before an action: what will happen, its fields, and a reason."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from nicegui import ui

from wire.rest.problems import FieldError

_HERE = Path(__file__).parent
_MODULES = {"alarmcast-fields": str(_HERE / "fields"), "alarmcast-format": str(_HERE.parent / "format")}


@dataclass(frozen=True)
class Field:
    """A field of an action: an input of some ``kind``, a choice among options, a text file, or sites.

    ``more`` holds attributes of the input. For sites, the value None is all sites, offered only with ``every``.
    """

    name: str
    label: str
    kind: str = "text"
    value: Any = ""
    options: Sequence[Any] = ()
    hint: str = ""
    every: bool = False
    more: dict[str, Any] = field(default_factory=dict)


class ConfirmDialog(ui.element, component="confirm_dialog.js", esm=_MODULES):
    """Asks before an action; emits ``action`` with key, reason, force and the values by field name."""

    def ask(
        self,
        key: str,
        *,
        title: str,
        lines: Sequence[str],
        button: str,
        fields: Sequence[Field] = (),
        reasons: Sequence[str] = (),
        force: str | None = None,
        needs_reason: bool = True,
    ) -> None:
        """Open the dialog; ``force`` is a box that must be ticked first."""
        self.run_method(
            "ask",
            {
                "key": key,
                "title": title,
                "lines": list(lines),
                "button": button,
                "fields": [asdict(field) for field in fields],
                "reasons": list(reasons),
                "force": force,
                "needs_reason": needs_reason,
            },
        )

    def refuse(self, detail: str, errors: Sequence[FieldError] = ()) -> None:
        """Show in the open dialog why the action failed, at the fields that ``errors`` name."""
        self.run_method("refuse", detail, [error.model_dump() for error in errors])

    def close(self) -> None:
        """Close the dialog."""
        self.run_method("close")
