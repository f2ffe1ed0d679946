"""The agents of all machines, worst first, and machines that publish without being enrolled."""

from functools import partial

from nicegui import html

from service.page.changes import Topic
from service.page.components.blocks import empty_state, machine_title, panel
from service.page.components.data_table import Cell, Column, DataTable, Row, figure, link, moment, tag_cell
from service.page.components.refreshable import Refreshable
from service.page.layout import PageContext
from service.page.texts import text
from wire.enums import Role
from wire.rest.machines import MachineView, UnregisteredMachineView

_STATE_COLUMN = 1
_OFFLINE_RANK, _NEVER_RANK = 2e9, 1e9  # above any number of buffered events


class Agents:
    """The table of agents."""

    def __init__(self, context: PageContext) -> None:
        self._context = context
        columns = [
            Column(text("health.agents.machine")),
            Column(text("health.agents.state"), hint=text("health.agents.state_hint")),
            Column(text("health.agents.buffered"), number=True, hint=text("health.agents.buffered_hint")),
            Column(text("health.agents.unreadable"), number=True, hint=text("health.agents.unreadable_hint")),
            Column(text("health.agents.clock_offset"), number=True, hint=text("health.agents.clock_offset_hint")),
            Column(text("health.agents.last_seen")),
            Column(text("health.agents.version")),
        ]
        with panel(text("health.agents.title"), note=text("health.agents.note"), wide=True):
            self._not_enrolled = Refreshable(partial(_not_enrolled, may_enrol=context.may(Role.ADMIN)))
            self._empty = Refreshable(_empty)
            self._table = DataTable(
                columns,
                label=text("health.agents.title"),
                order=(_STATE_COLUMN, True),
                first=12,
                zone=context.zone,
            )
        context.parts.add(self._refresh, Topic.EVENTS, Topic.RESOURCES, pause_s=5.0, interval_s=15.0)

    async def _refresh(self) -> None:
        fleet = await self._context.cache.get_or_fetch("machines", self._context.client.machines.list)
        self._empty.show(not fleet.machines)
        self._table.set_visibility(bool(fleet.machines))
        self._table.show([_row(machine) for machine in fleet.machines])
        self._not_enrolled.show(list(fleet.unregistered))


def _row(machine: MachineView) -> Row:
    key, agent = f"{machine.site}/{machine.machine}", machine.agent
    name = link(machine_title(machine), f"/machines/{key}", key)
    if agent is None:
        never = tag_cell(text("health.agents.never"), "○", "quiet", _NEVER_RANK)
        return Row(key, [name, never, None, None, None, None, None])
    if agent.online:
        rank = float((agent.spooled or 0) + agent.skipped)
        state = tag_cell(text("health.agents.online"), "●", "ac-good", rank)
    else:
        state = tag_cell(text("health.agents.offline"), "✕", "ac-bad-word", _OFFLINE_RANK)
    skew = agent.skew_ms
    cells: list[Cell] = [
        name,
        state,
        agent.spooled,
        agent.skipped,
        figure(None if skew is None else abs(skew), f"{(skew or 0) / 1000:+.1f} s"),
        moment(agent.last_seen_at, machine.time_zone),
        agent.version,
    ]
    return Row(key, cells)


def _empty(empty: bool) -> None:  # noqa: FBT001 - what is shown
    if empty:
        empty_state(text("health.agents.none.title"), text("health.agents.none.help"))


def _not_enrolled(machines: list[UnregisteredMachineView], *, may_enrol: bool) -> None:
    for one in machines:
        with html.p().classes("ac-warn"):
            html.span("◆", **{"aria-hidden": "true"})
            html.span(text("health.agents.not_enrolled", machine=f"{one.site}/{one.machine}"))
            if may_enrol:
                html.a(text("health.agents.enrol"), href=f"/learning?site={one.site}&machine={one.machine}")
            else:
                html.span(text("health.agents.ask_admin"))
