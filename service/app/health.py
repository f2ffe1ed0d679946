"""Errors and warnings of this process, for the components of its roles."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from service.app.config_check import window_conflict
from service.app.warnings import WARNING_TTL, agent_warnings, limit_warnings
from service.broker_access.models import BrokerAuthState
from service.errors import NoChampion, Unavailable
from service.machines.catalogue import size_warning
from service.machines.limits_store import ExcessStore
from service.settings import DynamicSecurity
from wire.enums import ProcessRole
from wire.topics import PREFIX

if TYPE_CHECKING:
    from service.app.service import Service


@dataclass(frozen=True)
class Health:
    """``errors`` by component; the service is ready if there are none."""

    errors: dict[str, str]
    counts: dict[str, int]
    model_version: str | None
    warnings: dict[str, str] = field(default_factory=dict)  # no reason to be unready
    parts: tuple[str, ...] = ()  # all components that were checked

    @property
    def ready(self) -> bool:
        """Whether events can be stored and forecasts served."""
        return not self.errors


_MISSING = {
    ProcessRole.API: "answers requests",
    ProcessRole.INGEST: "receives alarms from the broker",
    ProcessRole.WORKER: "trains models or stores forecasts",
}


def health_of(service: "Service", can_see: Callable[[str], bool]) -> Health:
    """Return errors and warnings; warnings name only machines of visible sites."""
    version, model_error = _model(service)
    errors = {**_errors(service), **service.cluster.errors, "database": _database_error(service)}
    if service.roles & {ProcessRole.API, ProcessRole.WORKER}:
        errors["model"] = model_error
    return Health(
        {component: error for component, error in errors.items() if error},
        _counts(service),
        version,
        _warnings(service, can_see),
        tuple(errors),
    )


def _errors(service: "Service") -> dict[str, str | None]:
    errors = {"maintenance": service.maintenance.error}
    if service.roles & {ProcessRole.INGEST, ProcessRole.WORKER}:  # not needed for the API alone
        errors["broker"] = service.ingest.mqtt.error
        errors["broker_thread"] = None if service.ingest.mqtt.is_alive else "the network thread has ended"
    if ProcessRole.INGEST in service.roles:
        ingester = service.ingest.ingester
        errors["ingest"] = ingester.last_error or (None if ingester.is_alive else "the ingester has ended")
    if service.roles & {ProcessRole.API, ProcessRole.WORKER}:
        errors["forecasts"] = service.forecasts.thread.error
    if ProcessRole.WORKER in service.roles:
        errors["learning"] = service.learning.worker.error
        errors["scoring"] = service.scoring.thread.error
        errors["notifications"] = service.notifications.thread.error
        errors["deliveries"] = service.notifications.sender.error
        errors["credentials"] = _credential_error(service)
    return errors


def _counts(service: "Service") -> dict[str, int]:
    return {
        **service.ingest.ingester.counts,
        "forecasts_stored": service.forecasts.thread.made,
        "forecasts_scored": service.scoring.thread.scored,
        "events_deleted": service.maintenance.forgotten,
        "notifications_opened": service.notifications.service.opened,
        "notifications_delivered": service.notifications.sender.delivered,
        "rejected": sum(service.ingest.ingester.rejected.values()),
        **service.ingest.broker_stats.counts,
    }


def _warnings(service: "Service", can_see: Callable[[str], bool]) -> dict[str, str]:
    warnings = (
        service.ingest.broker_stats.warnings()
        | _credential_warnings(service, can_see)
        | _cluster_warnings(service)
    )
    warnings |= _catalogue_warnings(service)
    warnings |= service.backups.warnings()
    stores, now = service.stores, service.clock.now()
    warnings |= limit_warnings(ExcessStore(stores.database), stores.events.limits, now, can_see)
    if service.machines.clock_check.warning:
        warnings["clock"] = service.machines.clock_check.warning
    warnings |= _agent_warnings(service, can_see)
    warnings |= _model_warnings(service, can_see)
    silent = [one for one in service.machines.silence.silent if can_see(one.machine.site)]
    if silent:
        names = ", ".join(str(one.machine) for one in silent[:10])
        warnings["silent"] = f"{len(silent)} machines have sent no alarms for unusually long: {names}."
    senders = (name.removeprefix(f"{PREFIX}/") for name, _ in service.ingest.ingester.rejected.most_common())
    flooding = [name for name in senders if can_see(name.partition("/")[0])][:3]
    if flooding:
        warnings["flood"] = f"The inbox was full, mostly from {', '.join(flooding)}; agents resend."
    return warnings


def _catalogue_warnings(service: "Service") -> dict[str, str]:
    try:
        warning = size_warning(service.stores.catalogue.entries().values())
    except Unavailable:
        return {}  # reported as an error of the database
    return {"catalogue_size": warning} if warning else {}


def _model_warnings(service: "Service", can_see: Callable[[str], bool]) -> dict[str, str]:
    """Return conflicts of model and settings, and machines with too many unknown codes."""
    try:
        serving = service.forecasts.service.champion.current()
    except (NoChampion, Unavailable):
        return {}
    warnings: dict[str, str] = {}
    conflict = window_conflict(service.settings, serving.version.name, serving.forecaster.spec)
    if conflict:
        warnings["windows"] = conflict
    left_out = serving.version.report.get("left_out", {})
    found = [f"{name} ({count})" for name, count in left_out.items() if can_see(name.partition("/")[0])]
    if found:
        warnings["codes"] = (
            f"More codes outside of the catalogue than the limit: {', '.join(found[:10])}. The others count as "
            "unknown. Check what these machines send, and add important codes to the catalogue."
        )
    return warnings


def _agent_warnings(service: "Service", can_see: Callable[[str], bool]) -> dict[str, str]:
    now = service.clock.now()
    try:
        noted = service.stores.machines.agents_with_notes(now - WARNING_TTL)
    except Unavailable:
        return {}  # reported as an error of the database
    return agent_warnings({machine: one for machine, one in noted.items() if can_see(machine.site)}, now)


def _cluster_warnings(service: "Service") -> dict[str, str]:
    """Return missing roles and processes with errors, if there may be several processes."""
    if service.stores.database.is_sqlite or ProcessRole.API not in service.roles:
        return {}
    try:
        present = service.cluster.processes()
    except Unavailable:
        return {}  # reported as an error of the database
    warnings: dict[str, str] = {}
    missing = frozenset(ProcessRole) - service.roles - {role for one in present for role in one.roles}
    if missing:
        words = "; ".join(f"no process {_MISSING[role]} (role {role})" for role in sorted(missing))
        warnings["roles"] = f"A process is missing: {words}. Start one: alarmcast serve --roles …"
    ill = {one.name: one.report.errors for one in present if not one.report.ready}
    if ill:
        warnings["processes"] = (
            f"Processes with errors: {'; '.join(f'{name} ({_listed(why)})' for name, why in ill.items())}."
        )
    return warnings


def _listed(errors: Mapping[str, str]) -> str:
    return ", ".join(f"{component}: {error}" for component, error in errors.items())


def _credential_error(service: "Service") -> str | None:
    credentials = service.broker_access.credentials
    if (
        service.settings.broker_dynamic_security is DynamicSecurity.ON
        and credentials.auth_state is BrokerAuthState.OFF
    ):
        return f"broker_dynamic_security is on, but {credentials.unavailable_reason}"
    return service.broker_access.reconciler.error if service.ingest.mqtt.connected else None


def _credential_warnings(service: "Service", can_see: Callable[[str], bool]) -> dict[str, str]:
    warnings: dict[str, str] = {}
    credentials = service.broker_access.credentials
    if credentials.auth_state is BrokerAuthState.OFF:
        warnings["broker_open"] = (
            f"The MQTT broker accepts unauthenticated clients, as far as this service can tell: "
            f"{credentials.unavailable_reason}. Enable authentication with: alarmcast admin broker-init"
        )
    if credentials.foreign is not None:
        warnings["broker_foreign"] = credentials.foreign
    locked_out = [machine for machine in credentials.locked_out if can_see(machine.site)]
    if locked_out:
        names = ", ".join(str(machine) for machine in locked_out[:10])
        warnings["locked_out"] = (
            f"The broker rejects {len(locked_out)} machines: {names}. It has lost their passwords or disabled "
            "them; issue new ones: alarmcast admin machine rotate SITE/MACHINE"
        )
    return warnings | service.certificates.warnings()


def _database_error(service: "Service") -> str | None:
    try:
        service.stores.database.ping()
    except Unavailable as error:
        return str(error)
    return None


def _model(service: "Service") -> tuple[str | None, str | None]:
    champion = service.forecasts.service.champion
    try:
        return champion.current().version.name, champion.last_error
    except NoChampion:  # not an error: a new installation has no model yet
        return None, None
    except Unavailable as error:
        return None, str(error)
