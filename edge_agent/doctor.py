"""``alarmcast-edge doctor``: looks at everything an agent needs and says in words what is wrong.

One check after the other, from what is nearest to what is farthest; where one fails, those that need it are
not tried.
"""

import os
import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from threading import Event
from uuid import uuid4
from zoneinfo import ZoneInfo

from edge_agent.errors import EdgeError
from edge_agent.mqtt_connection import MqttConnection
from edge_agent.settings import Settings, SourceKind, broker_config, load
from edge_agent.status import StatusFile, has_fingerprint, inspect_spool, skipped_rows
from edge_agent.tls_check import needs_tls
from wire.acks import Ack
from wire.broker_check import Finding, check_broker
from wire.clock import PlantClock
from wire.codec import decode, encode
from wire.errors import PayloadRejected
from wire.events import EventBatch
from wire.identity import MachineId
from wire.log_rows import RowReader, RowRejected
from wire.mqtt import BrokerConfig
from wire.timestamps import EARLIEST
from wire.topics import Channel, agent_name, topic

_TIMEOUT_S = 5.0  # that each step may take
_MAX_SKEW_MS = 60_000
_MIN_FREE_BYTES = 50 << 20
_TAIL_BYTES = 4096


def examine(config: Path | None, flags: Mapping[str, str | None]) -> Iterator[Finding]:
    """Yield findings as they are made."""
    try:
        settings = load(config, flags)
    except EdgeError as error:
        yield Finding("configuration", ok=False, message=str(error))
        return
    machine = MachineId(settings.site, settings.machine)
    yield Finding("configuration", ok=True, message=f"speaks as {machine}")
    yield _source(settings)
    yield _spool(settings)
    yield from _reported(settings)
    yield _clock()
    yield from _broker(settings, machine)


def _source(settings: Settings) -> Finding:
    path = settings.source_path
    if settings.source_kind is SourceKind.SIMULATED or path is None:
        return Finding("source", ok=True, message="simulated; no machine is needed")
    if not path.exists():
        waits = settings.source_kind is SourceKind.TAIL
        words = f"there is no file {path}" + ("; the agent waits for it" if waits else "; correct source.path")
        return Finding("source", ok=None if waits else False, message=words)
    try:
        line = _last_line(path)
    except OSError as error:
        words = f"cannot read {path}: {error.strerror}; let the agent's user read it"
        return Finding("source", ok=False, message=words)
    return _last_alarm(settings, path, line)


def _last_alarm(settings: Settings, path: Path, line: str) -> Finding:
    if path.suffix == ".gz":
        return Finding("source", ok=True, message=f"{path} is there")
    rows = RowReader(settings.source_serial, ZoneInfo(settings.source_timezone), None)
    try:
        alarm = rows.read(line) if line else None
    except RowRejected as error:
        return Finding("source", ok=None, message=f"the last line of {path} is no alarm: {error}")
    if alarm is None:
        return Finding("source", ok=None, message=f"{path} is readable, but its last line is no alarm of ours")
    return Finding("source", ok=True, message=f"{path}: last alarm {alarm.code} at {alarm.at.isoformat()}")


def _last_line(path: Path) -> str:
    with path.open("rb") as file:
        file.seek(max(0, file.seek(0, os.SEEK_END) - _TAIL_BYTES))
        lines = [line for line in file.read().decode("utf-8", errors="replace").splitlines() if line.strip()]
    return lines[-1] if lines else ""


def _spool(settings: Settings) -> Finding:
    path = settings.spool_path
    folder = path.parent
    if not folder.exists():
        return Finding("spool", ok=None, message=f"the folder {folder} will be made at the first start")
    if not os.access(folder, os.W_OK):
        return Finding("spool", ok=False, message=f"cannot write to {folder}; let the agent's user write there")
    free = shutil.disk_usage(folder).free
    if free < _MIN_FREE_BYTES:
        words = f"only {free >> 20} MB are free in {folder}; when it is full the oldest events give way"
        return Finding("spool", ok=None, message=words)
    view = inspect_spool(path)
    if path.exists() and view is None:
        return Finding("spool", ok=False, message=f"{path} cannot be read as a spool; move it away")
    waiting = f"{view.events} events wait in it" if view else "new"
    return Finding("spool", ok=True, message=f"{path}: {waiting}, {free >> 20} MB are free")


def _reported(settings: Settings) -> Iterator[Finding]:
    """Repeat what the agent has noted in its spool: rows that it could not read, and its last warning."""
    view = inspect_spool(settings.spool_path)
    if view is not None and view.skipped:
        yield Finding("rows", ok=None, message=skipped_rows(view))
    if view is not None and view.warning is not None:
        at = view.warning.at.isoformat(timespec="seconds")
        yield Finding("warning", ok=None, message=f"{view.warning.text} ({at})")


def _clock() -> Finding:
    now = datetime.now(UTC)
    if now < EARLIEST.replace(year=2025):
        return Finding(
            "clock", ok=False, message=f"it says {now.isoformat()}; set it, and let it be kept (chrony)"
        )
    return Finding("clock", ok=True, message=f"it says {now.isoformat(timespec='seconds')}")


def _broker(settings: Settings, machine: MachineId) -> Iterator[Finding]:
    broker = broker_config(settings)
    findings = list(check_broker(broker, settings_prefix="broker.", tls_hint=needs_tls(broker)))
    yield from findings
    if all(finding.ok is not False for finding in findings):
        clock = PlantClock(settings.clock_wall_origin, settings.clock_plant_origin, settings.clock_speed)
        yield from _service(settings, broker, machine, clock.now)


def _service(
    settings: Settings, broker: BrokerConfig, machine: MachineId, now: Callable[[], datetime]
) -> Iterator[Finding]:
    """Ask the service for an ack of nothing, beside an agent that may be running."""
    epoch, answered = uuid4(), Event()
    skews: list[float] = []

    def received(payload: bytes) -> None:
        try:
            ack = decode(Ack, payload)
        except PayloadRejected:
            return
        if ack.epoch == epoch:
            skews.append((ack.now - now()).total_seconds() * 1000)
            answered.set()

    def opened(client_id: str) -> MqttConnection:
        link = MqttConnection(
            broker,
            client_id=client_id,
            subscriptions={topic(machine, Channel.ACKS): received},
            will=None,
            changed=lambda: None,
        )
        link.open()
        return link

    link = opened(f"{agent_name(machine)}/doctor")
    if not link.ready.is_set() and broker.username is not None:
        # A guarded broker lets a machine in under one client id, its agent's. We take that only if nobody has it.
        view = inspect_spool(settings.spool_path)
        beside = _check_with_running_agent(settings) if view is not None and view.in_use else None
        if beside is not None:
            yield beside
            return
        link = opened(agent_name(machine))
    if not link.ready.is_set():
        words = f"{link.why}; check broker.username, and the password in ALARMCAST_EDGE_BROKER_PASSWORD"
        yield Finding("credentials", ok=False, message=words)
        return
    link.publish(topic(machine, Channel.EVENTS), encode(EventBatch(epoch=epoch)))
    started = time.monotonic()
    answered.wait(_TIMEOUT_S)
    took = time.monotonic() - started
    refused, unheard = link.refused, link.nobody_listens
    link.disconnect()
    if refused:
        yield Finding("credentials", ok=False, message=f"{refused}; mend the broker's access rules for {machine}")
        return
    yield Finding("credentials", ok=True, message="the broker lets us in")
    yield _service_finding(machine, skews, took, unheard=unheard)


def _check_with_running_agent(settings: Settings) -> Finding | None:
    """Judge by the running agent, which has the machine's only connection; None if the broker must be asked.

    With another password than the agent's we ask as the agent: if it is wrong, the broker refuses us and the agent
    stays; if it is right, the agent is disconnected for a moment and comes back.
    """
    report = StatusFile(settings.spool_path).read()
    if report is not None and report.connected:
        if report.credentials is None:
            words = "not known: the running agent is older than this doctor; stop it to examine more"
            return Finding("credentials", ok=None, message=words)
        if not has_fingerprint(report.credentials, settings.broker_username, settings.broker_password):
            return None
        words = "the running agent is connected with them; stop it to examine more"
        return Finding("credentials", ok=True, message=words)
    trouble = report.error if report is not None and report.error else "not connected"
    words = f"the agent is running and says: {trouble}; check broker.username and broker.password"
    return Finding("credentials", ok=False, message=words)


def _service_finding(machine: MachineId, skews: list[float], took: float, *, unheard: bool) -> Finding:
    if not skews:
        words = (
            "nobody listens at the broker; start the service"
            if unheard
            else (
                f"no ack came; does the service run, and is the machine registered? "
                f"alarmcast admin enrol {machine}"
            )
        )
        return Finding("service", ok=False, message=words)
    skew = round(skews[0])
    if abs(skew) > _MAX_SKEW_MS:
        words = f"answers, but this clock is {abs(skew) / 1000:.0f} s {'behind' if skew > 0 else 'ahead'}; set it"
        return Finding("service", ok=False, message=words)
    return Finding("service", ok=True, message=f"acked in {took * 1000:.0f} ms, clocks differ by {skew} ms")
