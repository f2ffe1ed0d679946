"""Machines: who there is, how they are, who knocks, and what each of them has raised."""

from base64 import urlsafe_b64decode, urlsafe_b64encode
from typing import TYPE_CHECKING, Annotated

from fastapi import APIRouter, Query

from service.errors import InputRejected
from service.http.pagination import HALF_WORD, WORD
from service.http.problems import responses
from service.http.request import MachineName, Site
from service.machines.catalogue import unknown_code
from service.machines.history import Cursor, PageQuery
from service.machines.models import Agent, Machine, UnregisteredMachine
from wire.identity import MachineId
from wire.rest.machines import AgentView, AlarmsPage, AlarmView, Fleet, MachineView, UnregisteredMachineView
from wire.timestamps import UtcDatetime

if TYPE_CHECKING:
    from service.app.api_services import AppServices

_MOST = Cursor(at_us=WORD, code=HALF_WORD, epoch_id=HALF_WORD, seq=WORD)


def router(parts: "AppServices") -> APIRouter:
    """Return the routes of machines."""
    routes = APIRouter(prefix="/v1/machines", tags=["machines"])

    @routes.get("", responses=responses(422))
    def list_machines(
        retired: Annotated[bool, Query(description="Those too that have been let go.")] = False,  # noqa: FBT002
    ) -> Fleet:
        """All enrolled machines, and who knocks without being enrolled."""
        agents = parts.machines.agents()
        return Fleet(
            machines=[view(one, agents.get(one.id)) for one in parts.machines.all(retired=retired)],
            unregistered=[knock_view(knock) for knock in parts.machines.unregistered()],
        )

    @routes.get("/{site}/{machine}", responses=responses(404, 422))
    def get_machine(site: Site, machine: MachineName) -> MachineView:
        """One machine and how its agent is."""
        known = parts.machines.get(MachineId(site, machine))
        return view(known, parts.machines.agent(known))

    @routes.get("/{site}/{machine}/alarms", responses=responses(404, 422))
    def list_alarms(
        site: Site,
        machine: MachineName,
        limit: Annotated[int, Query(ge=1, le=1000, description="How many on a page.")] = 100,
        cursor: Annotated[str | None, Query(max_length=200, description="`next` of the page before.")] = None,
        since: Annotated[UtcDatetime | None, Query(description="Not before this moment.")] = None,
        until: Annotated[UtcDatetime | None, Query(description="Before this moment.")] = None,
        code: Annotated[int | None, Query(ge=0, le=2**31 - 1, description="Of this code only.")] = None,
        flagged: Annotated[bool, Query(description="Those kept out of windows instead.")] = False,  # noqa: FBT002
    ) -> AlarmsPage:
        """What the machine has raised, newest first, a page at a time."""
        known = parts.machines.get(MachineId(site, machine))
        before = read_cursor(cursor) if cursor is not None else None
        page = parts.log.page(known, PageQuery(limit, before, since, until, code, flagged))
        entries = parts.catalogue.entries()
        views = []
        for alarm in page.alarms:
            entry = entries.get(alarm.code) or unknown_code(alarm.code)
            views.append(AlarmView(**alarm._asdict(), text=entry.text, severity=entry.severity))
        return AlarmsPage(alarms=views, next=write_cursor(page.next) if page.next else None)

    return routes


def view(machine: Machine, agent: Agent | None) -> MachineView:
    """Return a machine as the API shows it."""
    return MachineView(
        site=machine.id.site,
        machine=machine.id.machine,
        name=machine.name,
        time_zone=machine.time_zone,
        registered_at=machine.registered_at,
        state=machine.state,
        reason=str(machine.reason) if machine.reason else None,
        learned_at=machine.learned_at,
        agent=None
        if agent is None
        else AgentView(
            online=agent.online,
            last_seen_at=agent.last_seen_at,
            version=agent.version,
            spooled=agent.spooled,
            skew_ms=agent.skew_ms,
            state_at=agent.state_at,
            skipped=agent.skipped,
            last_skipped=agent.last_skipped,
            warning=agent.warning,
            duplicate=agent.rival,
        ),
    )


def knock_view(knock: UnregisteredMachine) -> UnregisteredMachineView:
    """Return who knocks as the API shows it."""
    site, machine = knock.machine
    return UnregisteredMachineView(site=site, machine=machine, first_at=knock.first_at, last_at=knock.last_at)


def write_cursor(cursor: Cursor) -> str:
    """Return a place in a list as text that fits into an address."""
    return urlsafe_b64encode(".".join(str(part) for part in cursor).encode()).decode().rstrip("=")


def read_cursor(text: str) -> Cursor:
    """Return the place that a cursor names, or raise :class:`InputRejected`."""
    try:
        parts = urlsafe_b64decode(text + "=" * (-len(text) % 4)).decode("ascii").split(".")
        cursor = Cursor(*(int(part) for part in parts))
    except (ValueError, TypeError):
        cursor = None
    if cursor is None or not all(abs(part) <= most for part, most in zip(cursor, _MOST, strict=True)):
        raise InputRejected("The cursor is not one that a page gave; start again without it.")
    return cursor
