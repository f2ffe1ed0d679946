"""Run one machine's agent: source to spool to publisher."""

import logging
import os
import signal
import sqlite3
from datetime import UTC, datetime
from threading import Event, Thread
from types import FrameType
from zoneinfo import ZoneInfo

from edge_agent import __version__
from edge_agent.errors import ConfigRejected, SpoolUnusable
from edge_agent.publisher import Publisher
from edge_agent.settings import Settings, SourceKind, broker_config
from edge_agent.sources import Source, SourceBatch
from edge_agent.sources.replay import Replay
from edge_agent.sources.tail import Tail
from edge_agent.spool import Appendix, Spool
from edge_agent.status import AgentStatus, StatusFile, fingerprint
from wire.clock import PlantClock
from wire.identity import MachineId
from wire.log_rows import RowReader
from wire.state import Note, bounded
from wire.timestamps import clamped

log = logging.getLogger(__name__)

_STATUS_INTERVAL_S = 1.0
_RETRY_S = 1.0  # after a failed write to the spool


def run(settings: Settings) -> None:
    """Run the agent in this process until SIGTERM or SIGINT; a finished source keeps it online."""
    stop = Event()

    def request_stop(_signal: int, _frame: FrameType | None) -> None:
        stop.set()

    signal.signal(signal.SIGTERM, request_stop)
    signal.signal(signal.SIGINT, request_stop)
    clock = PlantClock(settings.clock_wall_origin, settings.clock_plant_origin, settings.clock_speed)
    source = _source(settings, clock)
    spool = Spool(settings.spool_path, max_events=settings.spool_max_events, max_bytes=settings.spool_max_mb << 20)
    publisher = Publisher(
        machine=MachineId(settings.site, settings.machine),
        broker=broker_config(settings),
        spool=spool,
        clock=clock,
        agent_version=__version__,
    )
    status = StatusWriter(settings, publisher, stop)
    publisher.start()
    status.start()
    try:
        _read_source_into_spool(spool, source, publisher, stop, clock=clock, kind=settings.source_kind.value)
        stop.wait()
    finally:
        stop.set()
        publisher.stop(settings.stop_drain_seconds)
        status.join()
        spool.close()


class StatusWriter(Thread):
    """Writes the status file once a second."""

    def __init__(self, settings: Settings, publisher: Publisher, stop: Event) -> None:
        super().__init__(name="status", daemon=True)
        self._publisher, self._stopping = publisher, stop
        self._file = StatusFile(settings.spool_path)
        self._machine, self._broker = f"{settings.site}/{settings.machine}", str(broker_config(settings))
        self._credentials = fingerprint(settings.broker_username, settings.broker_password)
        self._connected: bool | None = None
        self._since = ""

    def run(self) -> None:
        """Write until the stop, and once more at the end."""
        while not self._stopping.wait(_STATUS_INTERVAL_S):
            self._write()
        self._write()

    def _write(self) -> None:
        publisher, now = self._publisher, datetime.now(UTC).isoformat(timespec="seconds")
        if publisher.connected != self._connected:
            self._connected, self._since = publisher.connected, now
        acked = publisher.last_ack
        self._file.write(
            AgentStatus(
                os.getpid(),
                self._machine,
                self._broker,
                connected=publisher.connected,
                since=self._since,
                error=publisher.error,
                last_ack_at=None
                if acked is None
                else datetime.fromtimestamp(acked, UTC).isoformat(timespec="seconds"),
                skew_ms=publisher.skew_ms,
                window=publisher.window,
                credentials=self._credentials,
            )
        )


def _read_source_into_spool(
    spool: Spool, source: Source, publisher: Publisher, stop: Event, *, clock: PlantClock, kind: str
) -> None:
    before, _, bookmark = (spool.bookmark or f"{kind} ").partition(" ")
    if before != kind:
        log.warning("the spool's last source was %s; %s starts from its beginning", before, kind)
        bookmark = ""
    for batch in source.batches(bookmark or None, stop):
        for error in batch.skipped:
            log.warning("skipped an unreadable row: %s", error)
        appendix = _appendix(batch, clamped(clock.now()))
        while True:
            try:
                spool.append(batch.alarms, f"{kind} {batch.bookmark}", appendix)
                break
            except sqlite3.OperationalError as error:
                # The source waits too: its bookmark has not moved, and the disk may have room again.
                log.warning("cannot write to the spool, retrying: %s. Free disk space.", error)
                if stop.wait(_RETRY_S):
                    return
            except sqlite3.Error as error:
                raise SpoolUnusable(
                    f"Cannot write to the spool: {error}. Move the file away and start again."
                ) from None
        if batch.alarms or batch.skipped or batch.lost:
            publisher.wake()
        if stop.is_set():
            break


def _appendix(batch: SourceBatch, now: datetime) -> Appendix:
    last = Note(text=bounded(batch.skipped[-1]), at=now) if batch.skipped else None
    if batch.lost is None:
        return Appendix(skipped=len(batch.skipped), last_skipped=last)
    log.error("%s", batch.lost.message)
    span = (min(batch.lost.since or now, now), now)
    warning = Note(text=bounded(batch.lost.message), at=now)
    return Appendix(skipped=len(batch.skipped), last_skipped=last, warning=warning, lost=span)


def _source(settings: Settings, clock: PlantClock) -> Source:
    if settings.source_kind is SourceKind.SIMULATED:
        # Imported late: real machines do not need its tables.
        from edge_agent.simulator import machine_profile  # noqa: PLC0415
        from edge_agent.sources.simulated import Simulated  # noqa: PLC0415

        return Simulated(
            machine_profile(settings.source_seed, settings.source_index),
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
