"""Machines at the broker: which of them it lets in, new credentials for one, and none any more."""

import asyncio

from nicegui import html
from nicegui.events import GenericEventArguments

from service.page.access.actions import Action, ActionRunner, FormValues, OneTimeSecret
from service.page.access.widgets import calm, turn_pages
from service.page.components.blocks import machine_title, panel
from service.page.components.data_table import (
    Cell,
    Column,
    DataTable,
    Row,
    actions_cell,
    date_cell,
    link,
    tag_cell,
)
from service.page.components.refreshable import Refreshable
from service.page.layout import PageContext, show_api_errors
from wire.enums import CredentialState
from wire.rest.credentials import CredentialsView
from wire.rest.machines import MachineView

_COLUMNS = [
    Column("machine"),
    Column("at the broker"),
    Column("since"),
    Column("issued", number=True, hint="How many times credentials have been issued for it."),
    Column("what to do"),
    Column(""),
]
_PAGE = 20  # machines whose credentials are asked for at once
_STATES = {
    CredentialState.LOCKED_OUT: ("locked out", "✕", "ac-bad-text", 3),
    CredentialState.REVOKED: ("revoked", "‖", "ac-sev-medium", 2),
    CredentialState.NONE: ("none issued", "○", "quiet", 1),
    CredentialState.ACTIVE: ("let in", "●", "ac-good", 0),
}
_OPEN = (
    "The broker has no dynamic security, so it does not ask machines who they are and there are no credentials "
    "to manage; alarmcast admin broker-init makes one that has it."
)
_UNKNOWN = "The broker has not said yet whether it asks machines who they are."
_NOBODY = "No machines yet; the first gets its credentials when it is enrolled on the page Learning."
_TYPED = "(event) => emit(event.target.value)"


class Machines:
    """The table of credentials, some machines at a time, because each is a question of its own."""

    def __init__(self, told: PageContext, desk: ActionRunner) -> None:
        self._told, self._desk = told, desk
        self._wanted, self._page = "", 0
        self._fleet: list[MachineView] = []
        with panel("Machines at the broker", note="each has credentials of its own"):
            self._calm = Refreshable(calm)
            self._locked_out = Refreshable(_warn)
            with html.div().classes("ac-stack") as self._inside:
                with html.div(role="search").classes("ac-tools"), html.label():
                    html.span("Machine")
                    search = html.input_(type="search", name="machine", placeholder="padova/filler")
                    search.on("input", self._search, js_handler=_TYPED, throttle=0.3, leading_events=False)
                self._table = DataTable(
                    _COLUMNS, [], label="Machines at the broker", first=_PAGE, order=(1, True), zone=told.zone
                )
                self._table.on_action(self._on_deed)
                self._pages = Refreshable(self._draw_pages)
        self._inside.set_visibility(False)

    async def renew(self) -> None:
        """Show them as they are now."""
        status = await self._told.status.newest()
        guarded = status.broker.secured if status else None
        self._fleet = (await self._told.cache.get_or_fetch("machines", self._told.client.machines.list)).machines
        is_open = guarded is False
        self._calm.show(_OPEN if is_open else _NOBODY if not self._fleet else _UNKNOWN if guarded is None else "")
        self._locked_out.show(status.warnings.get("locked_out", "") if status else "")
        self._inside.set_visibility(bool(self._fleet) and not is_open)
        if self._fleet and not is_open:
            await self._show()

    async def _show(self) -> None:
        found = [one for one in self._fleet if self._wanted in f"{_key(one)} {one.name.casefold()}"]
        page = self._page = min(self._page, max(len(found) - 1, 0) // _PAGE)
        shown, wanted = found[page * _PAGE : (page + 1) * _PAGE], self._wanted
        held = await asyncio.gather(*(self._told.client.credentials.get(_key(one)) for one in shown))
        if (page, wanted) != (self._page, self._wanted):
            return  # somebody looks for another one meanwhile
        self._table.show([_row(machine, one) for machine, one in zip(shown, held, strict=True)])
        self._pages.show((page, len(found)))

    async def _search(self, event: GenericEventArguments) -> None:
        self._wanted, self._page = str(event.args).strip().casefold(), 0
        with show_api_errors():
            await self._show()

    def _draw_pages(self, told: tuple[int, int]) -> None:
        page, found = told
        if found <= _PAGE:
            return
        first, last = page * _PAGE + 1, min((page + 1) * _PAGE, found)
        back = ("Before", lambda: self._turn(-1), page > 0)
        on = ("Next", lambda: self._turn(1), last < found)
        turn_pages(back, on, f"{first:,} to {last:,} of {found:,}")

    async def _turn(self, by: int) -> None:
        self._page = max(self._page + by, 0)
        with show_api_errors():
            await self._show()

    async def _on_deed(self, deed: str, machine: str) -> None:
        if deed == "rotate":
            self._ask_rotate(machine)
        else:
            self._ask_revoke(machine)

    def _ask_rotate(self, machine: str) -> None:
        async def rotate(_wish: FormValues) -> OneTimeSecret:
            issued = await self._told.client.credentials.rotate(machine)
            return OneTimeSecret(
                f"A ready edge.toml for {machine}",
                ["Put it in place of the agent's, where only the agent reads it, and start the agent again."],
                issued.edge_toml,
                file=f"{machine.replace('/', '-')}.edge.toml",
            )

        self._desk.ask(
            Action(
                f"Issue new credentials for {machine}?",
                [
                    "Whoever is there with the old ones is thrown out at once.",
                    "Until the agent has the new ones its alarms wait in its spool, and none is lost.",
                    "The new ones are shown next, as a ready edge.toml, and never again.",
                ],
                "Issue them",
                rotate,
            )
        )

    def _ask_revoke(self, machine: str) -> None:
        async def revoke(wish: FormValues) -> str:
            now = await self._told.client.credentials.revoke(machine, reason=wish.reason)
            return f"The broker lets {machine} in no more. {now.note or ''}".strip()

        self._desk.ask(
            Action(
                f"Revoke the credentials of {machine}?",
                ["It is thrown out at once and let in no more, until new ones are issued."],
                "Revoke them",
                revoke,
                needs_reason=True,
            )
        )


def _row(machine: MachineView, held: CredentialsView) -> Row:
    text, sign, tone, rank = _STATES[held.state]
    key = _key(machine)
    buttons = [("rotate", "Issue" if held.generation == 0 else "Rotate", f"Issue new credentials for {key}")]
    if held.state in (CredentialState.ACTIVE, CredentialState.LOCKED_OUT):
        buttons.append(("revoke", "Revoke", f"Revoke the credentials of {key}"))
    since = held.revoked_at or held.locked_out_since or held.rotated_at or held.issued_at
    cells: list[Cell] = [
        link(machine_title(machine), f"/machines/{key}", key),
        tag_cell(text, sign, tone, rank),
        date_cell(since, machine.time_zone),
        held.generation,
        held.note or "",
        actions_cell(*buttons),
    ]
    return Row(key, cells)


def _key(machine: MachineView) -> str:
    return f"{machine.site}/{machine.machine}"


def _warn(sentence: str) -> None:
    if sentence:
        html.p(sentence).classes("ac-warn")
