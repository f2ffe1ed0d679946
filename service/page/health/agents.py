"""The agents, worst first: who cannot be heard, where most waits, whose clock is off."""

from functools import partial

from nicegui import html, ui

from service.page.components.blocks import empty_state, machine_title, panel
from service.page.components.data_table import Cell, Column, DataTable, Row, figure, link, moment, tag_cell
from service.page.components.refreshable import Refreshable
from service.page.layout import PageContext, show_api_errors
from wire.enums import Role
from wire.rest.machines import MachineView, UnregisteredMachineView

_RENEWED = 5.0  # seconds
_COLUMNS = [
    Column("machine"),
    Column("agent", hint="Sorts by how much a look is due."),
    Column("waiting", number=True, hint="Events in the agent's spool that wait for an ack."),
    Column("unread", number=True, hint="Rows of the source that the agent could not read as an alarm."),
    Column("clock off", number=True, hint="The service's plant clock minus the agent's."),
    Column("heard"),
    Column("version"),
]
_WORST = 1
_NEVER, _FINE = 1e9, 0.0


class Agents:
    """A table of them, and who knocks without being enrolled."""

    def __init__(self, told: PageContext) -> None:
        self._told = told
        with panel("Agents", note="worst first; press a heading to sort by it"):
            self._knocking = Refreshable(partial(_knocking, may_enrol=told.may(Role.ADMIN)))
            self._empty = Refreshable(_nobody)
            self._table = DataTable(_COLUMNS, [], label="Agents", order=(_WORST, True), first=12, zone=told.zone)
        ui.timer(_RENEWED, self.renew)

    async def renew(self) -> None:
        """Show how they are now."""
        with show_api_errors():
            fleet = await self._told.cache.get_or_fetch("machines", self._told.client.machines.list)
            self._empty.show(not fleet.machines)
            self._table.set_visibility(bool(fleet.machines))
            self._table.show([_row(machine) for machine in fleet.machines])
            self._knocking.show(list(fleet.unregistered))


def _row(machine: MachineView) -> Row:
    name, agent = f"{machine.site}/{machine.machine}", machine.agent
    cells: list[Cell] = [link(machine_title(machine), f"/machines/{name}", name)]
    if agent is None:
        cells += [tag_cell("never connected", "○", "quiet", _NEVER), None, None, None, None, None]
        return Row(name, cells)
    waiting, skew = agent.spooled, agent.skew_ms
    state = (
        tag_cell("online", "●", "ac-good", float((waiting or 0) + agent.skipped)) if agent.online else _offline()
    )
    cells += [
        state,
        waiting,
        agent.skipped,
        figure(None if skew is None else abs(skew), f"{(skew or 0) / 1000:+.1f} s"),
        moment(agent.last_seen_at, machine.time_zone),
        agent.version,
    ]
    return Row(name, cells)


def _offline() -> Cell:
    return tag_cell("offline", "✕", "ac-bad-text", 2 * _NEVER)


def _nobody(nobody: bool) -> None:  # noqa: FBT001 - what is shown
    if nobody:
        empty_state(
            "No machines yet",
            "Enrol the first on the page Learning; its agent appears here once it has connected.",
        )


def _knocking(knocks: list[UnregisteredMachineView], *, may_enrol: bool) -> None:
    for knock in knocks:
        with html.p().classes("ac-warn"):
            html.span("◆", **{"aria-hidden": "true"})
            name = f"{knock.site}/{knock.machine}"
            html.span(f" {name} speaks but is not enrolled; nothing of it is stored, nothing is lost. ")
            if may_enrol:
                html.a("Enrol it", href=f"/learning?site={knock.site}&machine={knock.machine}")
            else:
                html.span("An administrator can enrol it.")
