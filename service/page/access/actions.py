"""What an admin does here: each deed is asked for in one dialog, and a secret that comes of it is shown once."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from nicegui import ui
from nicegui.events import GenericEventArguments

from alarmcast import AlarmcastError, ApiError
from service.page.components.confirm_dialog import ConfirmDialog, Field


@dataclass(frozen=True)
class OneTimeSecret:
    """A secret and what to do with it; ``file`` is the name under which a browser can keep it."""

    title: str
    lines: Sequence[str]
    secret: str = field(repr=False)
    file: str | None = None


@dataclass(frozen=True)
class FormValues:
    """What was typed for a deed, and why it is wanted."""

    typed: dict[str, Any]
    reason: str


@dataclass(frozen=True)
class Action:
    """Something to be done; ``do`` returns what was done, in words or as a secret to be shown."""

    title: str
    lines: Sequence[str]
    deed: str
    do: Callable[[FormValues], Awaitable[str | OneTimeSecret]]
    fields: Sequence[Field] = ()
    needs_reason: bool = False


class OnceDialog(ui.element, component="once_dialog.js"):
    """Shows a secret until it is closed; it goes straight to the browser and stays in no element here."""

    def show(self, once: OneTimeSecret) -> None:
        """Show it, this once."""
        told = {"title": once.title, "lines": list(once.lines), "secret": once.secret, "file": once.file}
        self.run_method("show", told)


class ActionRunner:
    """Both dialogs; ``done`` is called after a deed, so that the page looks again."""

    def __init__(self, done: Callable[[], Awaitable[None]]) -> None:
        self._done = done
        self._asked: dict[str, Action] = {}  # the one that the dialog is open for
        self._turn = 0
        self._dialog, self._once = ConfirmDialog(), OnceDialog()
        self._dialog.on("action", self._do)

    def ask(self, deed: Action) -> None:
        """Ask whether it shall be done."""
        self._turn += 1
        self._asked = {str(self._turn): deed}
        self._dialog.ask(
            str(self._turn),
            "",
            title=deed.title,
            lines=deed.lines,
            button=deed.deed,
            fields=deed.fields,
            needs_reason=deed.needs_reason,
        )

    async def _do(self, event: GenericEventArguments) -> None:
        wish = event.args
        deed = self._asked.get(wish["key"])
        if deed is None:
            return  # it was done already, or another is asked for meanwhile
        try:
            came = await deed.do(FormValues(wish["typed"], wish["reason"]))
        except ApiError as error:
            self._dialog.refuse(error.detail, error.errors)
            return
        except AlarmcastError as error:
            self._dialog.refuse(str(error))
            return
        self._asked.clear()
        self._dialog.close()
        if isinstance(came, OneTimeSecret):
            self._once.show(came)
        else:
            ui.notify(f"✓ {came}", color="dark")  # Quasar's green and white are too close to be read
        await self._done()
