"""What an admin may do here, each asked for with its reason in one dialog."""

from collections.abc import Awaitable, Callable

from nicegui import events, ui

from alarmcast import AlarmcastError, AsyncClient
from service.page.components.confirm_dialog import ConfirmDialog
from wire.enums import VersionStatus
from wire.rest.models import ModelDetail, ModelView

Deed = Callable[[str, str, bool], Awaitable[str]]  # about, reason, force: what was done, in words


class Deeds:
    """The dialog and what follows from it; ``done`` is called after a deed, so that the page looks again."""

    def __init__(self, client: AsyncClient, done: Callable[[], Awaitable[None]]) -> None:
        self._client = client
        self._done = done
        self._serving: str | None = None  # as the reader saw it when the dialog about a promotion opened
        self._dialog = ConfirmDialog()
        self._dialog.on("action", self._do)
        self._deeds: dict[str, Deed] = {
            "promote": self._promote,
            "roll_back": self._roll_back,
            "refresh": self._refresh,
            "retire": self._retire,
        }

    def ask_promote(self, model: ModelView, champion: ModelView | None, detail: ModelDetail) -> None:
        """Ask whether a version shall serve; one that the gate rejected needs force, and its reasons are shown."""
        rejected = model.status is VersionStatus.REJECTED
        self._serving = champion.version if champion else None
        serving = f"{champion.version} stops serving and stays." if champion else "Nothing serves yet."
        self._dialog.ask(
            "promote",
            model.version,
            title=f"Let {model.version} serve?",
            lines=[
                f"{model.version} makes all forecasts from now on, with its own memory. {serving}",
                *(["The gate rejected it:"] if rejected else []),
            ],
            reasons=detail.report.get("verdict", {}).get("reasons", []) if rejected else [],
            force=f"Promote {model.version} against the gate's verdict" if rejected else None,
            button=f"Promote {model.version}",
        )

    def ask_roll_back(self, champion: ModelView) -> None:
        """Ask whether to go back to the version that the champion was learned from."""
        learned = champion.machines[-1] if champion.machines else "its last machine"
        self._dialog.ask(
            "roll_back",
            champion.version,
            title=f"Go back from {champion.version} to {champion.parent}?",
            lines=[
                f"{champion.parent} makes all forecasts from now on, with the memory it had.",
                f"What {champion.version} learned of {learned} no longer counts.",
                f"{champion.version} stays and can be promoted again.",
            ],
            button=f"Roll back to {champion.parent}",
        )

    def ask_refresh(self, machine: str) -> None:
        """Ask whether a machine shall be learned again."""
        self._dialog.ask(
            "refresh",
            machine,
            title=f"Learn {machine} again?",
            lines=["From its recent windows, on top of what serves. The gate decides whether the result serves."],
            button="Learn it again",
            needs_reason=False,
        )

    def ask_retire(self, machine: str) -> None:
        """Ask whether a machine shall be let go."""
        self._dialog.ask(
            "retire",
            machine,
            title=f"Let {machine} go?",
            lines=[
                "There are no more forecasts of it, and its alarms are no longer taken.",
                "Its share of the memory is free for the next machine. Its past stays.",
            ],
            button="Retire it",
        )

    async def _do(self, event: events.GenericEventArguments) -> None:
        wish = event.args
        try:
            words = await self._deeds[wish["key"]](wish["about"], wish["reason"], wish["force"])
        except AlarmcastError as error:
            self._dialog.refuse(str(error))
            return
        self._dialog.close()
        ui.notify(f"✓ {words}", color="dark")  # Quasar's green and white are too close to be read
        await self._done()

    async def _promote(self, version: str, reason: str, force: bool) -> str:  # noqa: FBT001 - what was ticked
        await self._client.models.promote(version, reason=reason, force=force, serving=self._serving)
        return f"{version} serves."

    async def _roll_back(self, version: str, reason: str, _force: bool) -> str:  # noqa: FBT001
        now = await self._client.models.roll_back(reason=reason, serving=version)
        return f"Back from {version}: {now.version} serves."

    async def _refresh(self, machine: str, _reason: str, _force: bool) -> str:  # noqa: FBT001
        job = await self._client.enrolment.refresh(machine)
        return f"{machine} is learned again: job {job.id}."

    async def _retire(self, machine: str, reason: str, _force: bool) -> str:  # noqa: FBT001
        await self._client.enrolment.retire(machine, reason=reason)
        return f"{machine} has been retired."
