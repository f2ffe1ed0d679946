"""Routes of shelved alarms, maintenance windows and acknowledgements."""

from datetime import datetime, timedelta
from typing import Annotated

from fastapi import APIRouter, Query, Request

from service.http.problems import responses
from service.http.request import ActiveOnly, CursorQuery, Limit, MachineName, Number, Site, actor, author, paginate
from service.machines.catalogue import CatalogueEntry, unknown_code
from service.machines.catalogue_store import CatalogueStore
from service.notifications.models import Acknowledgement, MaintenanceWindow, ShelvedAlarm, SuppressionQuery
from service.notifications.suppression import SuppressionService
from wire.identity import ID_PATTERN, MachineId
from wire.rest.suppression import (
    AcknowledgementCreate,
    AcknowledgementPage,
    AcknowledgementView,
    MaintenanceCreate,
    MaintenancePage,
    MaintenanceView,
    ShelvedAlarmPage,
    ShelvedAlarmView,
    ShelveRequest,
)
from wire.rest.texts import PrintableText

AuditReason = Annotated[PrintableText | None, Query(max_length=1000, description="Recorded in the audit log.")]


def router(suppression: SuppressionService, catalogue: CatalogueStore) -> APIRouter:
    """Return the routes of shelving, maintenance and acknowledgement."""
    routes = APIRouter(prefix="/v1", tags=["notifications"])
    _add_shelving(routes, suppression, catalogue)
    _add_maintenance(routes, suppression)
    now = suppression.clock.now

    @routes.get("/machines/{site}/{machine}/acknowledgements", responses=responses(404, 422))
    def list_acknowledgements(
        site: Site,
        machine: MachineName,
        limit: Limit = 100,
        cursor: CursorQuery = None,
        active: ActiveOnly = False,  # noqa: FBT002
    ) -> AcknowledgementPage:
        """List the acknowledgements of a machine, newest first."""
        suppression.machines.get(MachineId(site, machine))
        query = SuppressionQuery(limit + 1, cursor, site, machine, now() if active else None)
        page, following = paginate(suppression.acknowledgements.page(query), limit, lambda ack: ack.id)
        entries = catalogue.entries()
        return AcknowledgementPage(
            acknowledgements=[_acknowledgement(ack, entries) for ack in page], next=following
        )

    @routes.post(
        "/machines/{site}/{machine}/acknowledgements", status_code=201, responses=responses(404, 410, 422)
    )
    def acknowledge_alarm(site: Site, machine: MachineName, body: AcknowledgementCreate) -> AcknowledgementView:
        """Acknowledge an alarm: shown with its notification; no new one is sent while it stays likely."""
        ack = suppression.acknowledge(MachineId(site, machine), body.code, who=author(body.by), note=body.note)
        return _acknowledgement(ack, catalogue.entries())

    return routes


def _add_shelving(routes: APIRouter, suppression: SuppressionService, catalogue: CatalogueStore) -> None:
    now = suppression.clock.now

    def shelved_page(query: SuppressionQuery, limit: int) -> ShelvedAlarmPage:
        page, following = paginate(suppression.shelves.page(query), limit, lambda shelved: shelved.id)
        at, entries = now(), catalogue.entries()
        return ShelvedAlarmPage(shelves=[_shelved(shelved, at, entries) for shelved in page], next=following)

    @routes.get("/shelves", responses=responses(422))
    def list_all_shelves(
        limit: Limit = 100,
        cursor: CursorQuery = None,
        active: ActiveOnly = True,  # noqa: FBT002
    ) -> ShelvedAlarmPage:
        """List the shelved alarms of all machines, newest first; `active=false` includes expired ones."""
        return shelved_page(SuppressionQuery(limit + 1, cursor, active_at=now() if active else None), limit)

    @routes.get("/machines/{site}/{machine}/shelves", responses=responses(404, 422))
    def list_shelves(
        site: Site,
        machine: MachineName,
        limit: Limit = 100,
        cursor: CursorQuery = None,
        active: ActiveOnly = True,  # noqa: FBT002
    ) -> ShelvedAlarmPage:
        """List the shelved alarms of a machine, newest first; `active=false` includes expired ones."""
        suppression.machines.get(MachineId(site, machine))
        query = SuppressionQuery(limit + 1, cursor, site, machine, now() if active else None)
        return shelved_page(query, limit)

    @routes.post("/machines/{site}/{machine}/shelves", status_code=201, responses=responses(404, 410, 422))
    def shelve_alarm(site: Site, machine: MachineName, body: ShelveRequest) -> ShelvedAlarmView:
        """Shelve an alarm of a machine until a plant time; this replaces an active shelving of the alarm.

        Its open notification is closed, and it is excluded from alarm metrics. Forecasts and learning are not
        affected. When the shelving ends, an alarm that is still likely opens a new notification.
        """
        until = body.until or timedelta(minutes=body.minutes or 0)
        shelved = suppression.shelve(
            MachineId(site, machine), body.code, until=until, who=author(body.by), reason=body.reason
        )
        return _shelved(shelved, now(), catalogue.entries())

    @routes.delete("/machines/{site}/{machine}/shelves/{number}", responses=responses(404, 409, 422))
    def unshelve_alarm(
        site: Site, machine: MachineName, number: Number, request: Request, reason: AuditReason = None
    ) -> ShelvedAlarmView:
        """Unshelve an alarm before its end; 409 if the shelving has ended."""
        shelved = suppression.unshelve(MachineId(site, machine), number, who=actor(request), reason=reason)
        return _shelved(shelved, now(), catalogue.entries())


def _add_maintenance(routes: APIRouter, suppression: SuppressionService) -> None:
    now = suppression.clock.now

    @routes.get("/maintenance", responses=responses(422))
    def list_maintenance(
        *,
        site: Annotated[str | None, Query(pattern=ID_PATTERN, description="Only of this site.")] = None,
        machine: Annotated[
            str | None, Query(pattern=ID_PATTERN, description="Only windows that cover this machine of the site.")
        ] = None,
        limit: Limit = 100,
        cursor: CursorQuery = None,
        active: ActiveOnly = False,
    ) -> MaintenancePage:
        """List past, current and scheduled maintenance windows, newest first."""
        query = SuppressionQuery(limit + 1, cursor, site, machine, now() if active else None)
        page, following = paginate(suppression.windows.page(query), limit, lambda window: window.id)
        at = now()
        return MaintenancePage(windows=[_window(window, at) for window in page], next=following)

    @routes.post("/maintenance", status_code=201, responses=responses(404, 422))
    def schedule_maintenance(body: MaintenanceCreate) -> MaintenanceView:
        """Suppress notifications of a machine or a site in a window of plant time; closes open ones."""
        window = MaintenanceWindow(
            0, body.site, body.machine, body.start or now(), body.until, author(body.by), body.reason
        )
        return _window(suppression.schedule_maintenance(window), now())

    @routes.delete("/maintenance/{number}", responses=responses(404, 409, 422))
    def cancel_maintenance(number: Number, request: Request, reason: AuditReason = None) -> MaintenanceView:
        """Cancel a window, started or not; 409 if it has ended."""
        return _window(suppression.cancel_maintenance(number, who=actor(request), reason=reason), now())


def _acknowledgement(ack: Acknowledgement, entries: dict[int, CatalogueEntry]) -> AcknowledgementView:
    return AcknowledgementView(
        id=ack.id,
        site=ack.machine.site,
        machine=ack.machine.machine,
        code=ack.code,
        text=(entries.get(ack.code) or unknown_code(ack.code)).text,
        at=ack.at,
        actor=ack.actor,
        note=ack.note,
        notification=ack.notification,
        ended_at=ack.ended_at,
    )


def _shelved(shelved: ShelvedAlarm, at: datetime, entries: dict[int, CatalogueEntry]) -> ShelvedAlarmView:
    return ShelvedAlarmView(
        id=shelved.id,
        site=shelved.machine.site,
        machine=shelved.machine.machine,
        code=shelved.code,
        text=(entries.get(shelved.code) or unknown_code(shelved.code)).text,
        start=shelved.start,
        until=shelved.until,
        unshelved_at=shelved.unshelved_at,
        active=shelved.is_active(at),
        actor=shelved.actor,
        reason=shelved.reason,
    )


def _window(window: MaintenanceWindow, at: datetime) -> MaintenanceView:
    return MaintenanceView(
        id=window.id,
        site=window.site,
        machine=window.machine,
        start=window.start,
        until=window.until,
        cancelled_at=window.cancelled_at,
        active=window.is_active(at),
        actor=window.actor,
        reason=window.reason,
    )
