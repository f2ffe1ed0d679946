"""How this process is, and what is worth a look: the parts are asked that its roles give it."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from service.app.agent_warnings import LASTS, agent_warnings, excess_warnings
from service.app.config_check import window_conflict
from service.broker_access.models import BrokerAuthState
from service.errors import NoChampion, Unavailable
from service.http.health import Health
from service.machines.catalogue import size_warning
from service.machines.limits_store import ExcessStore
from service.settings import DynamicSecurity
from wire.enums import ProcessRole
from wire.topics import PREFIX

if TYPE_CHECKING:
    from service.app.service import Service

_MISSING = {
    ProcessRole.API: "answers requests",
    ProcessRole.INGEST: "takes alarms from the broker",
    ProcessRole.WORKER: "learns, or makes forecasts on the grid",
}


def health_of(service: "Service", sees: Callable[[str], bool]) -> Health:
    """Say how every part of a process is; warnings name machines of those sites only that the asker sees."""
    version, trouble = _model(service)
    troubles = {**_troubles(service), **service.company.errors, "database": _database_trouble(service)}
    if service.roles & {ProcessRole.API, ProcessRole.WORKER}:
        troubles["model"] = trouble
    return Health(
        {part: why for part, why in troubles.items() if why},
        _counts(service),
        version,
        _warnings(service, sees),
        tuple(troubles),
    )


def _troubles(service: "Service") -> dict[str, str | None]:
    found = {"maintenance": service.housekeeping.error}
    if service.roles & {ProcessRole.INGEST, ProcessRole.WORKER}:  # who only answers does not need the broker
        found["broker"] = service.ingest.mqtt.error
        found["broker_thread"] = None if service.ingest.mqtt.is_alive else "the network thread has ended"
    if ProcessRole.INGEST in service.roles:
        ingester = service.ingest.ingester
        found["ingest"] = ingester.complaint or (None if ingester.is_alive else "the ingester has ended")
    if service.roles & {ProcessRole.API, ProcessRole.WORKER}:
        found["forecasts"] = service.forecasts.thread.error
    if ProcessRole.WORKER in service.roles:
        found["learning"] = service.worker.error
        found["scoring"] = service.scorekeeper.error
        found["notifications"] = service.lookout.error
        found["deliveries"] = service.courier.error
        found["credentials"] = _credential_trouble(service)
    return found


def _counts(service: "Service") -> dict[str, int]:
    return {
        **service.ingest.ingester.counts,
        "forecasts_stored": service.forecasts.thread.made,
        "forecasts_scored": service.scorekeeper.scored,
        "events_forgotten": service.housekeeping.forgotten,
        "notices_opened": service.notify.opened,
        "notices_delivered": service.courier.delivered,
        "rejected": sum(service.ingest.ingester.rejected.values()),
        **service.ingest.broker_stats.counts,
    }


def _warnings(service: "Service", sees: Callable[[str], bool]) -> dict[str, str]:
    told = (
        service.ingest.broker_stats.warnings() | _credential_warnings(service, sees) | _cluster_warnings(service)
    )
    told |= _catalogue_warnings(service)
    told |= service.backups.warnings()
    stores, now = service.stores, service.clock.now()
    told |= excess_warnings(ExcessStore(stores.database), stores.events.limits, now, sees)
    if service.machines.clock_check.warning:
        told["clock"] = service.machines.clock_check.warning
    told |= _agent_warnings(service, sees)
    told |= _model_warnings(service, sees)
    silent = [one for one in service.machines.silence.silent if sees(one.machine.site)]
    if silent:
        names = ", ".join(str(one.machine) for one in silent[:10])
        told["silent"] = f"{len(silent)} machines are silent against their rhythm: {names}."
    senders = (name.removeprefix(f"{PREFIX}/") for name, _ in service.ingest.ingester.rejected.most_common())
    flooding = [name for name in senders if sees(name.partition("/")[0])][:3]
    if flooding:
        told["flood"] = f"More came than fits at a time, most of it from {', '.join(flooding)}; it is sent again."
    return told


def _catalogue_warnings(service: "Service") -> dict[str, str]:
    try:
        warning = size_warning(service.stores.catalogue.entries().values())
    except Unavailable:
        return {}  # that the database is away is said elsewhere
    return {"catalogue_size": warning} if warning else {}


def _model_warnings(service: "Service", sees: Callable[[str], bool]) -> dict[str, str]:
    """Say whether the model and the settings differ, and of which machines it has not learned all codes."""
    try:
        serving = service.forecasts.service.champion.current()
    except (NoChampion, Unavailable):
        return {}
    told: dict[str, str] = {}
    conflict = window_conflict(service.settings, serving.version.name, serving.forecaster.spec)
    if conflict:
        told["windows"] = conflict
    left_out = serving.version.report.get("left_out", {})
    found = [f"{name} ({count})" for name, count in left_out.items() if sees(name.partition("/")[0])]
    if found:
        told["codes"] = (
            f"More codes outside of the catalogue than are learned: {', '.join(found[:10])}. They count as "
            "unknown. Look at what these machines send, and put codes that matter into the catalogue."
        )
    return told


def _agent_warnings(service: "Service", sees: Callable[[str], bool]) -> dict[str, str]:
    now = service.clock.now()
    try:
        noted = service.stores.machines.agents_with_notes(now - LASTS)
    except Unavailable:
        return {}  # the database is listed as a trouble itself
    return agent_warnings({machine: one for machine, one in noted.items() if sees(machine.site)}, now)


def _cluster_warnings(service: "Service") -> dict[str, str]:
    """Say which role nobody plays, and which processes are not well; only where there may be several."""
    if service.stores.database.is_sqlite or ProcessRole.API not in service.roles:
        return {}
    try:
        present = service.company.processes()
    except Unavailable:
        return {}  # that the database is away is said elsewhere
    told: dict[str, str] = {}
    missing = frozenset(ProcessRole) - service.roles - {role for one in present for role in one.roles}
    if missing:
        words = "; ".join(f"no process {_MISSING[role]} (role {role})" for role in sorted(missing))
        told["roles"] = f"Somebody is missing: {words}. Start one: alarmcast serve --roles …"
    ill = {one.name: one.report.errors for one in present if not one.report.ready}
    if ill:
        told["processes"] = f"Not well: {'; '.join(f'{name} ({_listed(why)})' for name, why in ill.items())}."
    return told


def _listed(troubles: Mapping[str, str]) -> str:
    return ", ".join(f"{part}: {why}" for part, why in troubles.items())


def _credential_trouble(service: "Service") -> str | None:
    """Say what is wrong with who may come in; that the broker is away is said elsewhere."""
    desk = service.credentials
    if service.settings.broker_dynamic_security is DynamicSecurity.ON and desk.auth_state is BrokerAuthState.OFF:
        return f"broker_dynamic_security is on, but {desk.unavailable_reason}"
    return service.reconciler.error if service.ingest.mqtt.connected else None


def _credential_warnings(service: "Service", sees: Callable[[str], bool]) -> dict[str, str]:
    told: dict[str, str] = {}
    desk = service.credentials
    if desk.auth_state is BrokerAuthState.OFF:
        told["broker_open"] = (
            f"Anybody who reaches the broker may speak as any machine, as far as this service can tell: "
            f"{desk.unavailable_reason}. To have it guarded: alarmcast admin broker-init"
        )
    if desk.foreign is not None:
        told["broker_foreign"] = desk.foreign
    locked_out = [machine for machine in desk.locked_out if sees(machine.site)]
    if locked_out:
        names = ", ".join(str(machine) for machine in locked_out[:10])
        told["locked_out"] = (
            f"The broker does not let in {len(locked_out)} machines: {names}. It has lost "
            "their passwords or keeps them out; issue new ones: alarmcast admin machine rotate SITE/MACHINE"
        )
    return told | service.expiry.warnings()


def _database_trouble(service: "Service") -> str | None:
    try:
        service.stores.database.ping()
    except Unavailable as error:
        return str(error)
    return None


def _model(service: "Service") -> tuple[str | None, str | None]:
    champion = service.forecasts.service.champion
    try:
        return champion.current().version.name, champion.complaint
    except NoChampion:  # young, not ill: events are taken, and the forecast endpoint says what is missing
        return None, None
    except Unavailable as error:
        return None, str(error)
