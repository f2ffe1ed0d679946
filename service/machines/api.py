"""Routes of machines, their alarms and gaps, silent machines, and the alarm catalogue."""

from base64 import urlsafe_b64decode, urlsafe_b64encode
from typing import Annotated

from fastapi import APIRouter, Body, Depends, Path, Query

from service.errors import InputRejected, NotFound
from service.http.csv_download import CsvResponse, csv_response, documented
from service.http.problems import responses
from service.http.request import HALF_WORD, WORD, MachineName, Site
from service.machines.catalogue import COLUMNS, CatalogueEntry, parse_catalogue, size_warning
from service.machines.catalogue_store import CatalogueStore
from service.machines.event_store import EventStore
from service.machines.events import Cursor, PageQuery
from service.machines.models import Agent, Machine, UnregisteredMachine
from service.machines.site_filter import SiteFilteredMachines, SiteFilteredSilence
from wire.events import TransitionKind
from wire.identity import MachineId
from wire.rest.catalogue import CatalogueMergeResult, CatalogueView, EntryUpdate, EntryView
from wire.rest.gaps import GapPage
from wire.rest.machines import AgentView, AlarmsPage, AlarmView, Fleet, MachineView, UnregisteredMachineView
from wire.rest.silent import SilentFleet, SilentView
from wire.timestamps import EARLIEST, LATEST, UtcDatetime

CodePath = Annotated[int, Path(ge=0, le=HALF_WORD, description="The alarm code.", examples=[139])]
_MOST = Cursor(at_us=WORD, code=HALF_WORD, epoch_id=HALF_WORD, seq=WORD)


def routers(
    machines: SiteFilteredMachines, events: EventStore, catalogue: CatalogueStore, silence: SiteFilteredSilence
) -> list[APIRouter]:
    """Return all routes of this feature."""
    return [
        _machine_routes(machines, events, catalogue),
        _gap_routes(machines, events),
        _silence_routes(silence),
        _catalogue_routes(catalogue),
    ]


def _machine_routes(machines: SiteFilteredMachines, events: EventStore, catalogue: CatalogueStore) -> APIRouter:
    routes = APIRouter(prefix="/v1/machines", tags=["machines"])

    @routes.get("", responses=responses(422))
    def list_machines(
        retired: Annotated[bool, Query(description="Those too that have been let go.")] = False,  # noqa: FBT002
    ) -> Fleet:
        """All enrolled machines, and unregistered machines that publish."""
        agents = machines.agents()
        return Fleet(
            machines=[view(one, agents.get(one.id)) for one in machines.all(retired=retired)],
            unregistered=[unregistered_view(unregistered) for unregistered in machines.unregistered()],
        )

    @routes.get("/{site}/{machine}", responses=responses(404, 422))
    def get_machine(site: Site, machine: MachineName) -> MachineView:
        """One machine and how its agent is."""
        known = machines.get(MachineId(site, machine))
        return view(known, machines.agent(known))

    @routes.get("/{site}/{machine}/alarms", responses=responses(404, 422))
    def list_alarms(
        site: Site, machine: MachineName, query: Annotated[PageQuery, Depends(_page_query)]
    ) -> AlarmsPage:
        """What the machine has raised, newest first, a page at a time."""
        page = events.page(machines.get(MachineId(site, machine)), query)
        entries = catalogue.entries()
        views = []
        for alarm in page.alarms:
            entry = entries[alarm.code]
            views.append(AlarmView(**alarm._asdict(), text=entry.text, severity=entry.severity))
        return AlarmsPage(alarms=views, next=write_cursor(page.next) if page.next else None)

    return routes


def _page_query(
    limit: Annotated[int, Query(ge=1, le=1000, description="How many on a page.")] = 100,
    cursor: Annotated[str | None, Query(max_length=200, description="`next` of the page before.")] = None,
    since: Annotated[UtcDatetime | None, Query(description="Not before this moment.")] = None,
    until: Annotated[UtcDatetime | None, Query(description="Before this moment.")] = None,
    code: Annotated[int | None, Query(ge=0, le=2**31 - 1, description="Of this code only.")] = None,
    flagged: Annotated[bool, Query(description="Those kept out of windows instead.")] = False,  # noqa: FBT002
    kind: Annotated[
        TransitionKind | None, Query(description="Cleared or acknowledged alarms or stops, not raised ones.")
    ] = None,
) -> PageQuery:
    before = read_cursor(cursor) if cursor is not None else None
    return PageQuery(limit, before, since, until, code, flagged, kind)


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
        agent=None if agent is None else AgentView.model_validate(agent, from_attributes=True),
    )


def unregistered_view(found: UnregisteredMachine) -> UnregisteredMachineView:
    """Return an unregistered machine as the API shows it."""
    site, machine = found.machine
    return UnregisteredMachineView(site=site, machine=machine, first_at=found.first_at, last_at=found.last_at)


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


def _gap_routes(machines: SiteFilteredMachines, events: EventStore) -> APIRouter:
    routes = APIRouter(prefix="/v1/machines", tags=["machines"])

    @routes.get("/{site}/{machine}/gaps", responses=responses(404, 422))
    def list_gaps(
        site: Site,
        machine: MachineName,
        limit: Annotated[int, Query(ge=1, le=1000, description="How many at the most.")] = 100,
        since: Annotated[UtcDatetime | None, Query(description="Gaps that end at this moment or later.")] = None,
        until: Annotated[UtcDatetime | None, Query(description="Gaps that begin before this moment.")] = None,
    ) -> GapPage:
        """Which of the machine's events were dropped because its spool was full, the newest ``limit``."""
        known = machines.get(MachineId(site, machine))
        found = events.newest_gaps(known, since or EARLIEST, until or LATEST, limit)
        return GapPage(gaps=found, dropped=sum(gap.dropped for gap in found))

    return routes


def _silence_routes(silence: SiteFilteredSilence) -> APIRouter:
    routes = APIRouter(tags=["machines"])

    @routes.get("/v1/silent")
    def list_silent_machines() -> SilentFleet:
        """Machines whose agents are online and whose alarms have stopped coming; judged every minute."""
        return SilentFleet(
            silent=[
                SilentView(
                    site=one.machine.site,
                    machine=one.machine.machine,
                    since=one.since,
                    overdue_hours=round(one.overdue_hours, 2),
                    usual_hours=round(one.usual_hours, 2),
                )
                for one in silence.current()
            ]
        )

    return routes


def _catalogue_routes(catalogue: CatalogueStore) -> APIRouter:
    routes = APIRouter(prefix="/v1/catalogue", tags=["catalogue"])

    @routes.get("")
    def read_catalogue() -> CatalogueView:
        """Every known code: its text and severity, whether it is forecast, and the alarm response."""
        return CatalogueView(entries=[_entry(entry) for entry in catalogue.entries().values()])

    @routes.get(".csv", response_class=CsvResponse, responses=documented(COLUMNS))
    def export_catalogue() -> CsvResponse:
        """Export the catalogue; the file can be imported again.

        An apostrophe is put before a text that a spreadsheet would read as a formula.
        """
        return csv_response(COLUMNS, [entry.row() for entry in catalogue.entries().values()], "catalogue")

    @routes.get("/{code}", responses=responses(404, 422))
    def get_catalogue_entry(code: CodePath) -> EntryView:
        """One code with its alarm response."""
        entry = catalogue.entries().get(code)
        if entry is None:
            raise NotFound(f"Code {code} is not in the catalogue.")
        return _entry(entry)

    @routes.put("/{code}", responses=responses(404, 422))
    def edit_catalogue_entry(code: CodePath, body: EntryUpdate) -> EntryView:
        """Add a code or replace all that the catalogue holds of it, its text included."""
        entry = CatalogueEntry(code, body.text, body.severity.value, body.target, body.response)
        catalogue.put(entry)
        return _entry(catalogue.entries()[code])

    @routes.post("", responses=responses(409, 422))
    def add_to_catalogue(
        body: Annotated[
            str,
            Body(
                media_type="text/csv",
                max_length=1_000_000,
                examples=["code,text,severity,target\n139,Film torn,high,yes\n"],
            ),
        ],
    ) -> CatalogueMergeResult:
        """Add a CSV with the columns code, text, severity and target; a code keeps the text it has.

        The columns cause, consequence, action and link are optional: without a column what is known is kept, and
        an empty cell deletes it.
        """
        entries = parse_catalogue(body)
        new = catalogue.merge(entries)
        return CatalogueMergeResult(
            entries=len(entries), new=new, warning=size_warning(catalogue.entries().values())
        )

    return routes


def _entry(entry: CatalogueEntry) -> EntryView:
    return EntryView(
        code=entry.code,
        text=entry.text,
        severity=entry.severity,
        target=entry.target,
        response=entry.response,
        origin=entry.origin,
    )
