"""The FastAPI app: the routes of every feature, one error format."""

import secrets
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from fastapi import APIRouter, Depends, FastAPI
from fastapi_offline import FastAPIOffline

from service import __version__
from service.alarm_metrics.build import build_routers as alarm_metrics_routers
from service.answers import api as answers_api
from service.answers.store import AnswerStore
from service.app import health_api
from service.app.publish_writes import PublishWrites
from service.auth import api as auth
from service.auth.middleware import AuthMiddleware, check_permissions_complete, require_checked, restrict
from service.broker_access import api as credentials
from service.forecasts import api as forecasts
from service.forecasts import stream_api as stream
from service.forecasts.fleet import FleetDependencies, FleetService
from service.http import problems
from service.http.permissions import document_rules
from service.http.principal import current_sites
from service.http.request import known_parameters
from service.ingest import quarantine_api as quarantine
from service.ingest.build import time_policy
from service.ingest.quarantine_api import QuarantineReplay
from service.machines import api as machines_api
from service.machines.evidence_store import HourlyCountStore
from service.machines.site_filter import SiteFilteredMachines, SiteFilteredQuarantine, SiteFilteredSilence
from wire.enums import ProcessRole

if TYPE_CHECKING:
    from service.app.service import Service

_DESCRIPTION = """
Which alarms will come in the next hours, for every machine of the fleet.

Send an API key or a session's token as `Authorization: Bearer …`; every answer holds only what is yours to see.
Times are UTC. Errors are `application/problem+json` (RFC 9457). Lists come in pages with a cursor.
A query parameter that an address does not know is refused.
Every answer has an `X-Request-Id`, which the service's log names too; send one of your own, and it is taken over.
"""


def create_app(service: "Service") -> FastAPI:
    """Build the app with its routes and middleware; without the API role it serves health and metrics only."""
    config = service.auth.config
    has_api = ProcessRole.API in service.roles
    # Offline: its documentation brings its own scripts, because a plant may have no internet.
    app = FastAPIOffline(
        title="Alarmcast",
        version=__version__,
        description=_DESCRIPTION,
        redirect_slashes=False,
        dependencies=[Depends(require_checked), Depends(known_parameters)],
        generate_unique_id_function=lambda route: route.name,  # an operation is called as its function is
    )
    problems.install(app)
    routers = [
        health_api.router(service),
        *(_feature_routers(service) if has_api else ()),
    ]
    if not has_api:
        config = replace(config, table=restrict(app, routers, config.table))
    check_permissions_complete(app, routers, config.table)
    for router in routers:
        app.include_router(router)
    if has_api:
        routes = (route for router in routers for route in router.routes)
        forecast = next(route for route in routes if getattr(route, "path", None) == forecasts.PATH)
        app.add_middleware(forecasts.ForecastFastPath, newest=service.forecasts.cache, route=forecast)
    app.add_middleware(AuthMiddleware, config=config)
    app.add_middleware(PublishWrites, bus=service.bus)
    documented = app.openapi

    def openapi() -> dict[str, Any]:
        return document_rules(problems.document(documented()), config.table)

    app.openapi = openapi  # type: ignore[method-assign]  # FastAPI's own way to extend its document
    return app


def _feature_routers(service: "Service") -> list[APIRouter]:
    """Return the routes of all features; machines, quarantine and silence are limited to the caller's sites."""
    stores, catalogue = service.stores, service.stores.catalogue
    machines = SiteFilteredMachines(stores.machines)
    silence = SiteFilteredSilence(service.machines.silence, service.clock.now)
    made, answers = service.forecasts, AnswerStore(stores.database, current_sites)
    horizon = timedelta(minutes=service.settings.horizon_minutes)
    return [
        credentials.router(service.broker_access.credentials),
        auth.session_router(service.auth.login),
        auth.users_router(service.auth.users),
        auth.keys_router(service.auth.users),
        auth.audit_router(stores.audit),
        *service.learning.routers(machines, catalogue, stores.audit, made.streams),
        *machines_api.routers(machines, stores.events, catalogue, silence),
        *forecasts.routers(machines, made.service, made.cache, made.explanations, _fleet(service)),
        stream.router(stream.StreamSources(made.streams, machines, made.cache, catalogue)),
        quarantine.router(*_quarantine(service), stores.audit),
        service.scoring.router(machines, catalogue, answers),
        *alarm_metrics_routers(
            service.settings,
            machines=machines,
            events=stores.events,
            catalogue=catalogue,
            clock=service.clock,
            excluded_spans=service.notifications.suppression.excluded_spans,
            silent_machines=silence.current,
        ),
        *service.notifications.routers(machines, catalogue, stores.audit),
        answers_api.router(answers, machines, service.clock, horizon),
    ]


def _quarantine(service: "Service") -> tuple[SiteFilteredQuarantine, QuarantineReplay]:
    quarantine = SiteFilteredQuarantine(service.machines.quarantine)
    policy = time_policy(service.settings)
    events, cache = service.stores.events, service.machines.cache
    return quarantine, QuarantineReplay(quarantine, events, cache, service.clock, policy, service.bus)


def _fleet(service: "Service") -> FleetService:
    dependencies = FleetDependencies(
        machines=service.stores.machines,
        strips=HourlyCountStore(service.stores.database),
        catalogue=service.stores.catalogue,
        champion=service.forecasts.service.champion,
        newest=service.forecasts.cache,
        silence=service.machines.silence,
        clock=service.clock,
        stale_after=service.settings.stale_after,
        shelved=service.notifications.suppression.shelved,
    )
    return FleetService(dependencies, token=secrets.token_hex(4))
