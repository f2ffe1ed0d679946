"""The MQTT credentials of machines: their state, new credentials, and revocation."""

import asyncio

from nicegui import html
from nicegui.events import GenericEventArguments

from service.page.components.actions import Action, ActionRunner, FormValues, OneTimeSecret
from service.page.components.blocks import empty_message, machine_title, pagination, panel
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
from service.page.components.forms import EMIT_VALUE
from service.page.components.refreshable import Refreshable
from service.page.layout import PageContext, show_api_errors
from service.page.texts import text
from wire.enums import CredentialState
from wire.rest.credentials import CredentialsView
from wire.rest.machines import MachineView

_PAGE_SIZE = 20  # credentials are fetched one by one


class MachineCredentials:
    """The table of credentials, one page of machines at a time."""

    def __init__(self, context: PageContext, actions: ActionRunner) -> None:
        self._context, self._actions = context, actions
        self._search, self._page = "", 0
        self._fleet: list[MachineView] = []
        columns = [
            Column(text("access.machines.machine")),
            Column(text("access.machines.state")),
            Column(text("access.machines.since")),
            Column(text("access.machines.issued"), number=True, hint=text("access.machines.issued_hint")),
            Column(text("access.machines.advice")),
            Column(""),
        ]
        title = text("access.machines.title")
        with panel(title, note=text("access.machines.note")):
            self._empty = Refreshable(empty_message)
            self._locked_out = Refreshable(_warning)
            with html.div().classes("ac-stack") as self._content:
                with html.div(role="search").classes("ac-tools"), html.label():
                    html.span(text("access.machines.search"))
                    search = html.input_(type="search", name="machine", placeholder="padova/filler")
                    search.on("input", self._on_search, js_handler=EMIT_VALUE, throttle=0.3, leading_events=False)
                self._table = DataTable(columns, label=title, first=_PAGE_SIZE, order=(1, True), zone=context.zone)
                self._table.on_action(self._on_action)
                self._pagination = Refreshable(self._draw_pagination)
        self._content.set_visibility(False)

    async def refresh(self) -> None:
        """Fetch and show the credentials."""
        status = await self._context.status.newest()
        secured = status.broker.secured if status else None
        fleet = await self._context.cache.get_or_fetch("machines", self._context.client.machines.list)
        self._fleet = fleet.machines
        if secured is False:
            self._empty.show(text("access.machines.no_security"))
        elif not self._fleet:
            self._empty.show(text("access.machines.empty"))
        else:
            self._empty.show(text("access.machines.unknown") if secured is None else "")
        self._locked_out.show(status.warnings.get("locked_out", "") if status else "")
        visible = bool(self._fleet) and secured is not False
        self._content.set_visibility(visible)
        if visible:
            await self._show()

    async def _show(self) -> None:
        found = [one for one in self._fleet if self._search in f"{_key(one)} {one.name.casefold()}"]
        page = self._page = min(self._page, max(len(found) - 1, 0) // _PAGE_SIZE)
        shown, search = found[page * _PAGE_SIZE : (page + 1) * _PAGE_SIZE], self._search
        credentials = await asyncio.gather(*(self._context.client.credentials.get(_key(one)) for one in shown))
        if (page, search) != (self._page, self._search):
            return  # another page or search was chosen in the meantime
        self._table.show([_row(machine, one) for machine, one in zip(shown, credentials, strict=True)])
        self._pagination.show((page, len(found)))

    async def _on_search(self, event: GenericEventArguments) -> None:
        self._search, self._page = str(event.args).strip().casefold(), 0
        with show_api_errors():
            await self._show()

    def _draw_pagination(self, shown: tuple[int, int]) -> None:
        page, count = shown
        if count <= _PAGE_SIZE:
            return
        first, last = page * _PAGE_SIZE + 1, min((page + 1) * _PAGE_SIZE, count)
        pagination(
            (text("access.machines.previous"), lambda: self._turn(-1), page > 0),
            (text("access.machines.next"), lambda: self._turn(1), last < count),
            text("access.machines.range", first=first, last=last, count=count),
        )

    async def _turn(self, pages: int) -> None:
        self._page = max(self._page + pages, 0)
        with show_api_errors():
            await self._show()

    async def _on_action(self, action: str, machine: str) -> None:
        if action == "rotate":
            self._ask_rotate(machine)
        else:
            self._ask_revoke(machine)

    def _ask_rotate(self, machine: str) -> None:
        async def rotate(_sent: FormValues) -> OneTimeSecret:
            issued = await self._context.client.credentials.rotate(machine)
            return OneTimeSecret(
                text("access.machines.secret_title", machine=machine),
                [text("access.machines.secret_help")],
                issued.edge_toml,
                file=f"{machine.replace('/', '-')}.edge.toml",
            )

        self._actions.ask(
            Action(
                text("access.machines.rotate_title", machine=machine),
                [
                    text("access.machines.rotate_old"),
                    text("access.machines.rotate_buffer"),
                    text("access.machines.rotate_new"),
                ],
                text("access.machines.rotate_submit"),
                rotate,
            )
        )

    def _ask_revoke(self, machine: str) -> None:
        async def revoke(sent: FormValues) -> str:
            now = await self._context.client.credentials.revoke(machine, reason=sent.reason)
            return text("access.machines.revoke_done", machine=machine, note=now.note or "").strip()

        self._actions.ask(
            Action(
                text("access.machines.revoke_title", machine=machine),
                [text("access.machines.revoke_help")],
                text("access.machines.revoke_submit"),
                revoke,
                needs_reason=True,
            )
        )


def _row(machine: MachineView, credentials: CredentialsView) -> Row:
    key = _key(machine)
    issue = text("access.machines.rotate") if credentials.generation else text("access.machines.issue")
    actions = [("rotate", issue, text("access.machines.rotate_label", machine=key))]
    if credentials.state in (CredentialState.ACTIVE, CredentialState.LOCKED_OUT):
        label = text("access.machines.revoke_label", machine=key)
        actions.append(("revoke", text("access.machines.revoke"), label))
    since = (
        credentials.revoked_at or credentials.locked_out_since or credentials.rotated_at or credentials.issued_at
    )
    cells: list[Cell] = [
        link(machine_title(machine), f"/machines/{key}", key),
        _state(credentials.state),
        date_cell(since, machine.time_zone),
        credentials.generation,
        credentials.note or "",
        actions_cell(*actions),
    ]
    return Row(key, cells)


def _state(state: CredentialState) -> Cell:
    return {
        CredentialState.LOCKED_OUT: tag_cell(text("access.machines.locked_out"), "✕", "ac-bad-word", 3),
        CredentialState.REVOKED: tag_cell(text("access.machines.revoked"), "‖", "ac-sev-medium", 2),
        CredentialState.NONE: tag_cell(text("access.machines.none"), "○", "quiet", 1),
        CredentialState.ACTIVE: tag_cell(text("access.machines.active"), "●", "ac-good", 0),
    }[state]


def _key(machine: MachineView) -> str:
    return f"{machine.site}/{machine.machine}"


def _warning(message: str) -> None:
    if message:
        html.p(message).classes("ac-warn")
