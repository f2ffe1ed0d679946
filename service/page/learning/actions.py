"""The actions of admins on the learning page: promote, roll back, retrain, retire."""

from alarmcast import AsyncClient
from service.page.components.actions import Action, ActionRunner, FormValues
from service.page.texts import text
from wire.enums import VersionStatus
from wire.rest.models import ModelDetail, ModelView


class LearningActions:
    """Asks for confirmation and runs the actions."""

    def __init__(self, client: AsyncClient, runner: ActionRunner) -> None:
        self._client, self._runner = client, runner

    def ask_promote(self, model: ModelView, champion: ModelView | None, detail: ModelDetail) -> None:
        """Ask whether to promote a version; one that the gate rejected needs force, with the gate's reasons."""
        version, serving = model.version, champion.version if champion else None  # as the user sees it now
        is_rejected = model.status is VersionStatus.REJECTED

        async def promote(sent: FormValues) -> str:
            await self._client.models.promote(version, reason=sent.reason, force=sent.force, serving=serving)
            return text("learning.promote.done", version=version)

        replaced = (
            text("learning.promote.replaces", version=serving) if serving else text("learning.promote.first")
        )
        lines = [text("learning.promote.help", version=version), replaced]
        self._runner.ask(
            Action(
                text("learning.promote.title", version=version),
                [*lines, text("learning.promote.rejected")] if is_rejected else lines,
                text("learning.promote.submit", version=version),
                promote,
                needs_reason=True,
                reasons=detail.report.get("verdict", {}).get("reasons", []) if is_rejected else [],
                force=text("learning.promote.force", version=version) if is_rejected else None,
            )
        )

    def ask_roll_back(self, champion: ModelView) -> None:
        """Ask whether to go back to the parent of the champion."""
        version, parent = champion.version, champion.parent
        machine = champion.machines[-1] if champion.machines else text("learning.roll_back.last_machine")

        async def roll_back(sent: FormValues) -> str:
            now = await self._client.models.roll_back(reason=sent.reason, serving=version)
            return text("learning.roll_back.done", before=version, version=now.version)

        self._runner.ask(
            Action(
                text("learning.roll_back.title", version=version, parent=parent),
                [
                    text("learning.roll_back.help", parent=parent),
                    text("learning.roll_back.lost", version=version, machine=machine),
                    text("learning.roll_back.kept", version=version),
                ],
                text("learning.roll_back.submit", version=parent),
                roll_back,
                needs_reason=True,
            )
        )

    def ask_retrain(self, machine: str) -> None:
        """Ask whether to train on a machine again."""

        async def retrain(_sent: FormValues) -> str:
            job = await self._client.enrolment.refresh(machine)
            return text("learning.retrain.done", machine=machine, job=job.id)

        self._runner.ask(
            Action(
                text("learning.retrain.title", machine=machine),
                [text("learning.retrain.help")],
                text("learning.retrain.submit"),
                retrain,
            )
        )

    def ask_retire(self, machine: str) -> None:
        """Ask whether to retire a machine."""

        async def retire(sent: FormValues) -> str:
            await self._client.enrolment.retire(machine, reason=sent.reason)
            return text("learning.retire.done", machine=machine)

        self._runner.ask(
            Action(
                text("learning.retire.title", machine=machine),
                [text("learning.retire.forecasts"), text("learning.retire.memory")],
                text("learning.retire.submit"),
                retire,
                needs_reason=True,
            )
        )
