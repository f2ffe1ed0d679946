"""Actions of a page: each is confirmed in one dialog, and a secret that it returns is shown once."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from nicegui import ui
from nicegui.events import GenericEventArguments

from alarmcast import AlarmcastError, ApiError
from service.page.components.confirm_dialog import ConfirmDialog, Field

_FORMAT = {"alarmcast-format": str(Path(__file__).parent.parent / "format")}


@dataclass(frozen=True)
class OneTimeSecret:
    """A secret with instructions; ``file`` is the name for a download."""

    title: str
    lines: Sequence[str]
    secret: str = field(repr=False)
    file: str | None = None


@dataclass(frozen=True)
class FormValues:
    """The values of an action's fields, the reason, and whether its box was ticked."""

    values: dict[str, Any]
    reason: str
    force: bool


@dataclass(frozen=True)
class Action:
    """An action that must be confirmed; ``run`` returns a message or a secret to be shown."""

    title: str
    lines: Sequence[str]
    button: str
    run: Callable[[FormValues], Awaitable[str | OneTimeSecret]]
    fields: Sequence[Field] = ()
    needs_reason: bool = False
    reasons: Sequence[str] = ()  # against it, shown as a list
    force: str | None = None  # the text of a box that must be ticked


class SecretDialog(ui.element, component="secret_dialog.js", esm=_FORMAT):
    """Shows a secret until it is closed; the server keeps it in no element."""

    def show(self, secret: OneTimeSecret) -> None:
        """Show a secret once."""
        self.run_method("show", asdict(secret))


class ActionRunner:
    """Confirms and runs actions; the change that each publishes refreshes the page."""

    def __init__(self) -> None:
        self._pending: dict[str, Action] = {}  # at most the action of the open dialog
        self._count = 0
        self._dialog, self._secret = ConfirmDialog(), SecretDialog()
        self._dialog.on("action", self._run)

    def ask(self, action: Action) -> None:
        """Open the dialog of an action."""
        self._count += 1
        key = str(self._count)
        self._pending = {key: action}
        self._dialog.ask(
            key,
            title=action.title,
            lines=action.lines,
            button=action.button,
            fields=action.fields,
            reasons=action.reasons,
            force=action.force,
            needs_reason=action.needs_reason,
        )

    async def _run(self, event: GenericEventArguments) -> None:
        sent = event.args
        action = self._pending.get(sent["key"])
        if action is None:
            return  # it has run already, or another dialog is open
        try:
            result = await action.run(FormValues(sent["values"], sent["reason"], sent["force"]))
        except ApiError as error:
            self._dialog.refuse(error.detail, error.errors)
            return
        except AlarmcastError as error:
            self._dialog.refuse(str(error))
            return
        self._pending.clear()
        self._dialog.close()
        if isinstance(result, OneTimeSecret):
            self._secret.show(result)
        else:
            ui.notify(f"✓ {result}", color="dark")  # white on Quasar's green has too little contrast
