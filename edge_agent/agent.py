"""Run the agents of one or more machines: source to spool to publisher."""

import logging
import os
import signal
import sqlite3
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from threading import Event, Thread
from types import FrameType

from edge_agent import __version__
from edge_agent.errors import EdgeError, SpoolUnusable
from edge_agent.publisher import Publisher
from edge_agent.settings import Settings, broker_config
from edge_agent.sources import Source, SourceBatch
from edge_agent.sources.build import build_source, code_book
from edge_agent.sources.codes import CodeBook
from edge_agent.spool import Spool
from edge_agent.spool_models import Appendix
from edge_agent.status import AgentStatus, StatusFile, fingerprint
from wire.clock import PlantClock
from wire.identity import MachineId
from wire.state import Note, bounded
from wire.timestamps import clamped

log = logging.getLogger(__name__)

_STATUS_INTERVAL_S = 1.0
_RESTART_S = 10.0  # after an agent of several has failed
_RETRY_S = 1.0  # after a failed write to the spool
_STOP_SIGNALS = ("SIGTERM", "SIGINT", "SIGBREAK")  # SIGBREAK is of Windows
_SIGNAL_INTERVAL_S = 0.5  # on Windows a thread that waits does not see signals


def run(machines: Sequence[Settings]) -> None:
    """Run the agents of all machines in this process until a signal asks to stop."""
    stop = Event()

    def request_stop(_signal: int, _frame: FrameType | None) -> None:
        stop.set()

    for name in _STOP_SIGNALS:
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), request_stop)
    failed: list[Exception] = []
    work = _keep_running if len(machines) > 1 else partial(_run_once, failed=failed)
    threads = [Thread(target=work, args=(one, stop), name=f"{one.site}/{one.machine}") for one in machines]
    for thread in threads:
        thread.start()
    for thread in threads:
        while thread.is_alive():
            thread.join(_SIGNAL_INTERVAL_S)
    if failed:
        raise failed[0]


def _run_once(settings: Settings, stop: Event, failed: list[Exception]) -> None:
    try:
        _run_machine(settings, stop)
    except Exception as error:  # noqa: BLE001 - the main thread raises it
        failed.append(error)


def _keep_running(settings: Settings, stop: Event) -> None:
    """Start an agent again after an error, which must not stop the other machines."""
    while not stop.is_set():
        try:
            _run_machine(settings, stop)
        except EdgeError as error:
            log.error("%s", error)  # noqa: TRY400 - it is a sentence
            stop.wait(_RESTART_S)
        except Exception:
            log.exception("the agent has failed and starts again")
            stop.wait(_RESTART_S)


def _run_machine(settings: Settings, stop: Event) -> None:
    """Run the agent of one machine; a finished source keeps it online."""
    clock = PlantClock(settings.clock_wall_origin, settings.clock_plant_origin, settings.clock_speed)
    codes = code_book(settings)
    source = build_source(settings, clock, codes)
    spool = Spool(settings.spool_path, max_events=settings.spool_max_events, max_bytes=settings.spool_max_mb << 20)
    codes.restore(spool.codes())
    publisher = Publisher(
        machine=MachineId(settings.site, settings.machine),
        broker=broker_config(settings),
        spool=spool,
        clock=clock,
        agent_version=__version__,
    )
    ended = Event()
    status = StatusWriter(settings, publisher, ended)
    publisher.start()
    status.start()
    try:
        kind = settings.source_kind.value
        read_into_spool(spool, source, stop, wake=publisher.wake, clock=clock, codes=codes, kind=kind)
        stop.wait()
    finally:
        ended.set()
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


def read_into_spool(
    spool: Spool,
    source: Source,
    stop: Event,
    *,
    wake: Callable[[], None],
    clock: PlantClock,
    codes: CodeBook,
    kind: str,
) -> None:
    """Store the source's batches until ``stop`` or its end; ``wake`` is called after each that has content."""
    before, _, bookmark = (spool.bookmark or f"{kind} ").partition(" ")
    if before != kind:
        log.warning("the spool's last source was %s; %s starts from its beginning", before, kind)
        bookmark = ""
    for batch in source.batches(bookmark or None, stop):
        for error in batch.skipped:
            log.warning("skipped an unreadable row: %s", error)
        appendix = replace(_appendix(batch, clamped(clock.now())), codes=tuple(codes.take_new()))
        while True:
            try:
                spool.append(batch.alarms, f"{kind} {batch.bookmark}", appendix, batch.transitions)
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
        if batch.alarms or batch.transitions or batch.skipped or batch.lost or batch.warning:
            wake()


def _appendix(batch: SourceBatch, now: datetime) -> Appendix:
    last = Note(text=bounded(batch.skipped[-1]), at=now) if batch.skipped else None
    message = batch.warning or (batch.lost.message if batch.lost else None)
    if message is None:
        return Appendix(skipped=len(batch.skipped), last_skipped=last)
    log.error("%s", message)
    span = (min(batch.lost.since or now, now), now) if batch.lost else None
    warning = Note(text=bounded(message), at=now)
    return Appendix(skipped=len(batch.skipped), last_skipped=last, warning=warning, lost=span)
