"""Acknowledgements: somebody knows of a likely or raised alarm."""

from typing import TYPE_CHECKING

from fastapi import APIRouter

from service.http.pagination import ActiveOnly, CursorQuery, Limit, paginate
from service.http.problems import responses
from service.http.request import MachineName, Site, author
from service.machines.catalogue import CatalogueEntry, unknown_code
from service.notifications.suppression import Acknowledgement, SuppressionQuery
from wire.identity import MachineId
from wire.rest.suppression import AcknowledgementCreate, AcknowledgementPage, AcknowledgementView

if TYPE_CHECKING:
    from service.app.api_services import AppServices


def router(parts: "AppServices") -> APIRouter:
    """Return the routes of acknowledgements."""
    routes = APIRouter(prefix="/v1/machines/{site}/{machine}/acknowledgements", tags=["notices"])

    @routes.get("", responses=responses(404, 422))
    def list_acknowledgements(
        site: Site,
        machine: MachineName,
        limit: Limit = 100,
        cursor: CursorQuery = None,
        active: ActiveOnly = False,  # noqa: FBT002
    ) -> AcknowledgementPage:
        """Who has acknowledged which alarms of a machine, newest first."""
        parts.machines.get(MachineId(site, machine))
        query = SuppressionQuery(limit + 1, cursor, site, machine, parts.clock.now() if active else None)
        shown, following = paginate(parts.hush.acknowledgements.page(query), limit, lambda one: one.id)
        entries = parts.catalogue.entries()
        return AcknowledgementPage(acknowledgements=[_view(one, entries) for one in shown], next=following)

    @routes.post("", status_code=201, responses=responses(404, 410, 422))
    def acknowledge_alarm(site: Site, machine: MachineName, wish: AcknowledgementCreate) -> AcknowledgementView:
        """Say that an alarm is known: shown beside its notice, and no new one is sent while it stays likely."""
        by = author(wish.by)
        made = parts.hush.acknowledge(MachineId(site, machine), wish.code, who=by, note=wish.note)
        return _view(made, parts.catalogue.entries())

    return routes


def _view(known: Acknowledgement, entries: dict[int, CatalogueEntry]) -> AcknowledgementView:
    return AcknowledgementView(
        id=known.id,
        site=known.machine.site,
        machine=known.machine.machine,
        code=known.code,
        text=(entries.get(known.code) or unknown_code(known.code)).text,
        at=known.at,
        actor=known.actor,
        note=known.note,
        notification=known.notice,
        ended_at=known.ended_at,
    )
