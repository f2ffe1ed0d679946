"""One machine's agent: source to spool to publisher, until told to stop."""

import logging
import signal
import sqlite3
from threading import Event
from types import FrameType
from zoneinfo import ZoneInfo

from paho.mqtt.enums import MQTTProtocolVersion

from edge_agent import __version__
from edge_agent.errors import ConfigRejected, SpoolUnusable
from edge_agent.publisher import Broker, Publisher
from edge_agent.settings import MqttVersion, Settings, SourceKind
from edge_agent.sources import Source
from edge_agent.sources.replay import Replay
from edge_agent.sources.tail import Tail
from edge_agent.spool import Spool
from wire.clock import PlantClock
from wire.identity import MachineId
from wire.log_rows import RowReader

log = logging.getLogger(__name__)


def run(settings: Settings) -> None:
    """Run the agent in this process until SIGTERM or SIGINT; a finished source keeps it online."""
    stop = Event()

    def ask_to_stop(_signal: int, _frame: FrameType | None) -> None:
        stop.set()

    signal.signal(signal.SIGTERM, ask_to_stop)
    signal.signal(signal.SIGINT, ask_to_stop)
    clock = PlantClock(settings.clock_wall_origin, settings.clock_plant_origin, settings.clock_speed)
    source = _source(settings, clock)
    spool = Spool(settings.spool_path, max_events=settings.spool_max_events)
    publisher = Publisher(
        machine=MachineId(settings.site, settings.machine),
        broker=_broker(settings),
        spool=spool,
        clock=clock,
        agent_version=__version__,
    )
    publisher.start()
    try:
        _fill(spool, source, publisher, stop, kind=settings.source_kind.value)
        stop.wait()
    finally:
        publisher.stop()
        spool.close()


def _fill(spool: Spool, source: Source, publisher: Publisher, stop: Event, *, kind: str) -> None:
    before, _, bookmark = (spool.bookmark or f"{kind} ").partition(" ")
    if before != kind:
        log.warning("the spool's last source was %s; %s starts from its beginning", before, kind)
        bookmark = ""
    for batch in source.batches(bookmark or None, stop):
        for complaint in batch.skipped:
            log.warning("skipped a row that is no alarm: %s", complaint)
        try:
            spool.append(batch.alarms, f"{kind} {batch.bookmark}")
        except sqlite3.Error as error:
            raise SpoolUnusable(f"Cannot write to the spool: {error}. Free disk space and start again.") from None
        if batch.alarms:
            publisher.wake()
        if stop.is_set():
            break


def _source(settings: Settings, clock: PlantClock) -> Source:
    if settings.source_kind is SourceKind.SIMULATED:
        # Imported late: its tables are of no use to a real machine's agent.
        from edge_agent.simulator import personality  # noqa: PLC0415
        from edge_agent.sources.simulated import Simulated  # noqa: PLC0415

        return Simulated(
            personality(settings.source_seed, settings.source_index),
            clock,
            settings.source_since or clock.now(),
        )
    path = settings.source_path
    if path is None:
        raise ConfigRejected("A file source needs source_path.")
    if path.is_dir():
        raise ConfigRejected(f"{path} is a folder; give a file to --source-path.")
    rows = RowReader(settings.source_serial, ZoneInfo(settings.source_timezone), settings.source_since)
    if settings.source_kind is SourceKind.TAIL:
        return Tail(path, rows=rows)
    if not path.is_file():
        raise ConfigRejected(f"There is no file {path} to replay; give an existing one to --source-path.")
    return Replay(path, rows=rows, clock=clock, at_once=settings.source_pace == "at_once")


def _broker(settings: Settings) -> Broker:
    v5 = settings.broker_mqtt_version is MqttVersion.V5
    return Broker(
        settings.broker_host,
        settings.broker_port,
        MQTTProtocolVersion.MQTTv5 if v5 else MQTTProtocolVersion.MQTTv311,
        settings.broker_username,
        settings.broker_password,
    )
