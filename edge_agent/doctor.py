"""``alarmcast-edge doctor``: check everything that an agent needs.

The checks run from the nearest to the farthest; if one fails, those that depend on it are skipped.
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

from edge_agent.errors import ConfigRejected, EdgeError
from edge_agent.mqtt_connection import MqttConnection
from edge_agent.settings import Settings, SourceKind, broker_config, load
from edge_agent.sources.build import PROTOCOLS, build_columns, build_protocol, code_book
from edge_agent.status import StatusFile, has_fingerprint, inspect_spool, skipped_rows
from edge_agent.tls_check import needs_tls
from wire.acks import Ack
from wire.alarm import Alarm
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

_TIMEOUT_S = 5.0
_MAX_SKEW_MS = 60_000
_MIN_FREE_BYTES = 50 << 20
_TAIL_BYTES = 4096


def examine(config: Path | None, flags: Mapping[str, str | None]) -> Iterator[Finding]:
    """Yield findings one by one."""
    try:
        settings = load(config, flags)
    except EdgeError as error:
        yield Finding("configuration", ok=False, message=str(error))
        return
    machine = MachineId(settings.site, settings.machine)
    yield Finding("configuration", ok=True, message=f"the machine is {machine}")
    yield from _source(settings)
    yield _spool(settings)
    yield from _reported(settings)
    yield _clock()
    yield from _broker(settings, machine)


def _source(settings: Settings) -> Iterator[Finding]:
    if settings.source_kind in PROTOCOLS:
        try:
            yield from build_protocol(settings, PlantClock(), code_book(settings)).check()
        except ConfigRejected as error:
            yield Finding("source", ok=False, message=str(error))
    elif settings.source_kind is SourceKind.SIMULATED or settings.source_path is None:
        yield Finding("source", ok=True, message="simulated; no machine is needed")
    else:
        yield _file(settings, settings.source_path)


def _file(settings: Settings, path: Path) -> Finding:
    if not path.exists():
        waits = settings.source_kind is SourceKind.TAIL
        message = f"there is no file {path}" + ("; the agent waits for it" if waits else "; correct source.path")
        return Finding("source", ok=None if waits else False, message=message)
    if path.suffix == ".gz":
        return Finding("source", ok=True, message=f"{path} is there")
    try:
        alarm = _last_alarm(settings, path)
    except (OSError, ConfigRejected) as error:
        message = str(error)
        if isinstance(error, OSError):
            message = f"cannot read {path}: {error.strerror}; let the agent's user read it"
        return Finding("source", ok=False, message=message)
    except RowRejected as error:
        return Finding("source", ok=None, message=f"the last line of {path} is not an alarm: {error}")
    if alarm is None:
        return Finding(
            "source", ok=None, message=f"{path} is readable, but its last line is not an alarm of this machine"
        )
    return Finding("source", ok=True, message=f"{path}: last alarm {alarm.code} at {alarm.at.isoformat()}")


def _last_alarm(settings: Settings, path: Path) -> Alarm | None:
    with path.open("rb") as file:
        first = file.readline(_TAIL_BYTES)
        file.seek(max(0, file.seek(0, os.SEEK_END) - _TAIL_BYTES))
        lines = [line for line in file.read().splitlines() if line.strip()]
    last = lines[-1] if lines else b""
    if settings.source_kind is SourceKind.TAIL and settings.source_options:
        columns = build_columns(settings, PlantClock(), code_book(settings))
        columns.start_file(first.decode(columns.encoding, errors="replace"))
        record = columns.read(last.decode(columns.encoding, errors="replace"))
        return record.alarm if record else None
    rows = RowReader(settings.source_serial, ZoneInfo(settings.source_timezone), None)
    return rows.read(last.decode("utf-8", errors="replace")) if last else None


def _spool(settings: Settings) -> Finding:
    path = settings.spool_path
    folder = path.parent
    if not folder.exists():
        return Finding("spool", ok=None, message=f"the folder {folder} will be created at the first start")
    if not os.access(folder, os.W_OK):
        return Finding("spool", ok=False, message=f"cannot write to {folder}; let the agent's user write there")
    free = shutil.disk_usage(folder).free
    if free < _MIN_FREE_BYTES:
        message = f"only {free >> 20} MB are free in {folder}; when it is full the oldest events give way"
        return Finding("spool", ok=None, message=message)
    view = inspect_spool(path)
    if path.exists() and view is None:
        return Finding("spool", ok=False, message=f"{path} cannot be read as a spool; move it away")
    waiting = f"{view.events} events wait in it" if view else "new"
    return Finding("spool", ok=True, message=f"{path}: {waiting}, {free >> 20} MB are free")


def _reported(settings: Settings) -> Iterator[Finding]:
    """Yield the agent's notes in its spool: unreadable rows and the last warning."""
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
            "clock", ok=False, message=f"it says {now.isoformat()}; set it, and keep it synchronised (chrony)"
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
    """Request an ack of an empty batch, beside an agent that may be running."""
    epoch, answered = uuid4(), Event()
    skews: list[float] = []

    def on_ack(payload: bytes) -> None:
        try:
            ack = decode(Ack, payload)
        except PayloadRejected:
            return
        if ack.epoch == epoch:
            skews.append((ack.now - now()).total_seconds() * 1000)
            answered.set()

    def connect(client_id: str) -> MqttConnection:
        link = MqttConnection(
            broker,
            client_id=client_id,
            subscriptions={topic(machine, Channel.ACKS): on_ack},
            will=None,
            changed=lambda: None,
        )
        link.open()
        return link

    link = connect(f"{agent_name(machine)}/doctor")
    if not link.ready.is_set() and broker.username is not None:
        # A secured broker accepts only the agent's client id. It is used only if no agent is connected.
        view = inspect_spool(settings.spool_path)
        finding = _check_with_running_agent(settings) if view is not None and view.in_use else None
        if finding is not None:
            yield finding
            return
        link = connect(agent_name(machine))
    if not link.ready.is_set():
        message = f"{link.error}; check broker.username, and the password in ALARMCAST_EDGE_BROKER_PASSWORD"
        yield Finding("credentials", ok=False, message=message)
        return
    link.publish(topic(machine, Channel.EVENTS), encode(EventBatch(epoch=epoch)))
    started = time.monotonic()
    answered.wait(_TIMEOUT_S)
    took = time.monotonic() - started
    refused, no_subscribers = link.refused, link.no_subscribers
    link.disconnect()
    if refused:
        yield Finding("credentials", ok=False, message=f"{refused}; correct the broker's ACLs of {machine}")
        return
    yield Finding("credentials", ok=True, message="the broker accepts the credentials")
    yield _service_finding(machine, skews, took, no_subscribers=no_subscribers)


def _check_with_running_agent(settings: Settings) -> Finding | None:
    """Report the state of the running agent, which has the only connection; None to connect instead.

    With another password than the agent's the doctor connects as the agent: a wrong one is refused and the agent
    stays connected; with a right one the agent is disconnected for a moment and reconnects.
    """
    report = StatusFile(settings.spool_path).read()
    if report is not None and report.connected:
        if report.credentials is None:
            message = "not known: the running agent is older than this doctor; stop it to check more"
            return Finding("credentials", ok=None, message=message)
        if not has_fingerprint(report.credentials, settings.broker_username, settings.broker_password):
            return None
        message = "the running agent is connected with them; stop it to check more"
        return Finding("credentials", ok=True, message=message)
    error = report.error if report is not None and report.error else "not connected"
    message = f"the agent is running and reports: {error}; check broker.username and broker.password"
    return Finding("credentials", ok=False, message=message)


def _service_finding(machine: MachineId, skews: list[float], took: float, *, no_subscribers: bool) -> Finding:
    if not skews:
        message = (
            "the broker has no subscriber; start the service"
            if no_subscribers
            else (
                f"no ack was received; does the service run, and is the machine registered? "
                f"alarmcast admin enrol {machine}"
            )
        )
        return Finding("service", ok=False, message=message)
    skew = round(skews[0])
    if abs(skew) > _MAX_SKEW_MS:
        message = (
            f"answers, but this clock is {abs(skew) / 1000:.0f} s {'behind' if skew > 0 else 'ahead'}; set it"
        )
        return Finding("service", ok=False, message=message)
    return Finding("service", ok=True, message=f"acked in {took * 1000:.0f} ms, clocks differ by {skew} ms")
