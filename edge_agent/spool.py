"""The spool: every alarm is stored on disk before it is published, until the service has acked it.

WAL and ``synchronous=FULL``: once :meth:`Spool.append` returns, a power cut loses nothing of it. The size is
limited in events and in bytes; at a limit, or on a full disk, the oldest events are evicted and leave an exact
gap record.
"""

import logging
import os
import sqlite3
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from datetime import datetime
from pathlib import Path
from threading import Lock
from uuid import UUID, uuid4

from edge_agent.descriptions import Descriptions
from edge_agent.disk_reserve import DiskReserve
from edge_agent.errors import SpoolUnusable
from edge_agent.spool_file import Transaction, bound, exclusive, is_full
from edge_agent.spool_models import NOTHING, Appendix, Depth, NamedCode, Pending, Transition
from wire.alarm import Alarm
from wire.events import AlarmEvent, AlarmTransition, Gap, GapReason, TransitionKind
from wire.state import Note
from wire.timestamps import from_us, to_us

# AUTOINCREMENT: a seq is never reused, even after its row was acked and deleted.
_SCHEMA = """
CREATE TABLE IF NOT EXISTS meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS events (
  seq INTEGER PRIMARY KEY AUTOINCREMENT, code INTEGER NOT NULL, at_us INTEGER NOT NULL,
  kind INTEGER NOT NULL DEFAULT 0
);
CREATE TABLE IF NOT EXISTS gaps (
  first_seq INTEGER PRIMARY KEY, last_seq INTEGER NOT NULL,
  first_us INTEGER NOT NULL, last_us INTEGER NOT NULL, reason TEXT NOT NULL
);
CREATE TABLE IF NOT EXISTS codes (
  name TEXT PRIMARY KEY, code INTEGER NOT NULL, text TEXT NOT NULL, severity TEXT NOT NULL,
  acked INTEGER NOT NULL DEFAULT 0
) WITHOUT ROWID;
"""
# Columns that spools of the first layout lack.
_ADDED_COLUMNS = {"events": "kind", "codes": "acked"}


log = logging.getLogger(__name__)

_GAPS_PER_BATCH = 100  # beside 500 events they stay below the contract's 64 kB
_PAGE_BYTES = 4096
_MAX_ATTEMPTS = 50  # evictions before an append fails for now
_DELETE = "DELETE FROM events WHERE seq IN (SELECT seq FROM events WHERE seq BETWEEN ? AND ? ORDER BY seq LIMIT ?)"
_EVICT_BATCH = 500  # events, so that whole pages become free


class Spool:
    """Events numbered from 1 within an epoch, stored until the service acks them."""

    def __init__(self, path: Path, *, max_events: int = 1_000_000, max_bytes: int = 256 << 20) -> None:
        self._lock = Lock()
        self._max_events = max_events
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._guard = exclusive(path.with_name(f"{path.name}.lock"))
            size = bound(path.parent, max_bytes)
            self._reserve = DiskReserve(path.with_name(f"{path.name}.reserve"), min(size // 8, 1 << 20))
            self._db = sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=10)
            self._prepare(size)
            self._write_even_if_full(self._create_schema)
            self.epoch = UUID(self._meta("epoch") or "")
            self._events = self._count("events")
            self._read_notes()
            self._descriptions = Descriptions(self._codes("WHERE acked = 0"))
            self._reserve.allocate()
        except (sqlite3.Error, OSError, ValueError) as error:
            message = (
                f"Cannot use {path} as spool: {error}. Give a writable place to --spool-path; "
                "if the file is damaged, move it away and start again."
            )
            raise SpoolUnusable(message) from None

    def close(self) -> None:
        """Close the file; its content stays."""
        with self._lock:
            self._db.close()
            os.close(self._guard)

    @property
    def bookmark(self) -> str | None:
        """The position of the source after the last append."""
        with self._lock:
            return self._meta("bookmark")

    def append(
        self,
        alarms: Sequence[Alarm],
        bookmark: str,
        appendix: Appendix = NOTHING,
        transitions: Sequence[Transition] = (),
    ) -> None:
        """Store alarms and the source's bookmark in one transaction: a restart neither skips nor repeats."""
        rows = [(alarm.code, to_us(alarm.at), 0) for alarm in alarms]
        for number, (alarm, kind, after) in enumerate(transitions):
            rows.insert(after + number, (alarm.code, to_us(alarm.at), kind.number))

        def insert() -> int:
            if appendix.lost:
                self._record_loss(*appendix.lost)
            self._db.executemany("INSERT INTO events (code, at_us, kind) VALUES (?, ?, ?)", rows)
            self._db.executemany(
                "INSERT OR REPLACE INTO codes (name, code, text, severity) VALUES (?, ?, ?, ?)", appendix.codes
            )
            self._set_meta("bookmark", bookmark)
            self._write_notes(appendix)
            surplus = self._events + len(rows) - self._max_events
            return len(rows) - (self._evict_oldest(surplus) if surplus > 0 else 0)

        with self._lock:
            more = self._write_even_if_full(insert, evict=max(len(rows), _EVICT_BATCH))
            self._events += more
            self._descriptions.add(appendix.codes)
            if appendix != NOTHING:
                self._read_notes()

    def codes(self) -> list[NamedCode]:
        """Return the numbers of named alarms."""
        with self._lock:
            return self._codes()

    def _codes(self, condition: str = "") -> list[NamedCode]:
        rows = self._db.execute(f"SELECT name, code, text, severity FROM codes {condition}")  # noqa: S608 - ours
        return [NamedCode(*row) for row in rows]

    def warn(self, warning: Note) -> None:
        """Store a warning for people; the last one is shown."""
        with self._lock:
            self._write_even_if_full(lambda: self._set_meta("warning", warning.model_dump_json()))
            self._read_notes()

    def pending(self, after: int, limit: int) -> Pending:
        """Return up to ``limit`` rows numbered above ``after``, and the gap records that end above it.

        Gaps are older than the remaining events, so they are sent with the first batch after them. A code is
        described in each batch with a row of it until one of these is acked.
        """
        with self._lock:
            rows = self._db.execute(
                "SELECT seq, code, at_us, kind FROM events WHERE seq > ? ORDER BY seq LIMIT ?", (after, limit)
            ).fetchall()
            gaps = self._db.execute(
                "SELECT first_seq, last_seq, first_us, last_us, reason FROM gaps"
                " WHERE last_seq > ? ORDER BY first_seq LIMIT ?",
                (after, min(limit, _GAPS_PER_BATCH)),
            ).fetchall()
            epoch = self.epoch
            rows, codes = self._descriptions.attach(rows)
        return Pending(
            epoch,
            [AlarmEvent(seq=seq, code=code, at=from_us(at)) for seq, code, at, kind in rows if not kind],
            [
                Gap(seqs=(first, last), first_at=from_us(a), last_at=from_us(b), reason=GapReason(reason))
                for first, last, a, b, reason in gaps
            ],
            [
                AlarmTransition(seq=seq, code=code, at=from_us(at), kind=TransitionKind.of_number(kind))
                for seq, code, at, kind in rows
                if kind
            ],
            codes,
        )

    def delete_acked(self, epoch: UUID, seqs: Iterable[tuple[int, int]]) -> int:
        """Delete committed events and return their number; an ack of another epoch deletes nothing."""
        spans = list(seqs)
        if epoch != self.epoch or not spans:
            return 0
        with self._lock:
            try:
                with self._transaction():
                    gone = sum(self._delete(span, self._max_events) for span in spans)
                    described = self._descriptions.acked_with(spans)
                    self._db.executemany(
                        "UPDATE codes SET acked = 1 WHERE code = ?", [(code,) for code in described]
                    )
                self._descriptions.remove(described)
            except sqlite3.OperationalError as error:
                if not is_full(error):
                    raise
                gone = sum(self._delete_in_pieces(span) for span in spans)
            self._events -= gone
            self._renew_epoch()
        return gone

    def request_new_epoch(self) -> bool:
        """Begin a new epoch once the spool is empty: pending events may be stored under the present one.

        Returns False if that was requested before.
        """
        with self._lock:
            if self._meta("renew") is not None:
                return False
            self._write_even_if_full(lambda: self._set_meta("renew", "1"))
            self._renew_epoch()
        return True

    def _renew_epoch(self) -> None:
        if self._meta("renew") is None or self._events or self._count("gaps"):
            return
        fresh = uuid4()

        def renew() -> int:
            self._db.execute("DELETE FROM meta WHERE key = 'renew'")
            return self._set_meta("epoch", str(fresh))

        self._write_even_if_full(renew)
        self.epoch = fresh
        log.info("a new epoch has begun: %s", fresh)

    def _delete(self, span: tuple[int, int], most: int) -> int:
        gone = self._db.execute(_DELETE, (*span, most)).rowcount
        self._db.execute("DELETE FROM gaps WHERE first_seq >= ? AND last_seq <= ?", span)
        return gone

    def _delete_in_pieces(self, span: tuple[int, int]) -> int:
        """Delete on a full disk, in small transactions that need little space."""
        gone = 0
        while piece := self._write_even_if_full(lambda: self._delete(span, _EVICT_BATCH)):
            gone += piece
        return gone

    def oldest_seq(self) -> int | None:
        """Return the lowest unacked seq of an event or gap."""
        with self._lock:
            query = (
                "SELECT min(seq) FROM (SELECT min(seq) AS seq FROM events UNION SELECT min(first_seq) FROM gaps)"
            )
            lowest = self._db.execute(query).fetchone()[0]
        return int(lowest) if lowest is not None else None

    def unacked_up_to(self, seq: int) -> int:
        """Return how many events up to ``seq`` are unacked."""
        with self._lock:
            row = self._db.execute("SELECT count(*) FROM events WHERE seq <= ?", (seq,)).fetchone()
        return int(row[0])

    def depth(self) -> Depth:
        """Return how much is unacked."""
        with self._lock:
            oldest = self._db.execute("SELECT at_us FROM events ORDER BY seq LIMIT 1").fetchone()
            return Depth(self._events, self._count("gaps"), from_us(oldest[0]) if oldest else None)

    def _prepare(self, size: int) -> None:
        """Limit database and WAL so that both together stay within ``size``."""
        self._db.executescript(
            f"PRAGMA page_size={_PAGE_BYTES}; PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL;"
        )
        pages = size * 3 // 4 // _PAGE_BYTES
        log_pages = max(8, min(256, pages // 8))
        self._db.execute(f"PRAGMA max_page_count={pages}")
        self._db.execute(f"PRAGMA wal_autocheckpoint={log_pages}")
        self._db.execute(f"PRAGMA journal_size_limit={log_pages * _PAGE_BYTES}")

    def _create_schema(self) -> int:
        for statement in _SCHEMA.split(";"):
            self._db.execute(statement)
        for table, column in _ADDED_COLUMNS.items():
            if column not in {name for _, name, *_ in self._db.execute(f"PRAGMA table_info({table})")}:
                self._db.execute(f"ALTER TABLE {table} ADD COLUMN {column} INTEGER NOT NULL DEFAULT 0")
        self._db.execute("INSERT OR IGNORE INTO meta VALUES ('epoch', ?)", (str(uuid4()),))
        return 0

    def _write_even_if_full(self, change: Callable[[], int], *, evict: int = 0) -> int:
        """Commit a change; on a full disk, free the reserve and evict the oldest events."""
        try:
            with self._transaction():
                return change()
        except sqlite3.OperationalError as error:
            if not is_full(error):
                raise
        self._reserve.release()
        try:
            for _ in range(_MAX_ATTEMPTS):
                self._truncate_wal()
                if evict:
                    self._evict(evict)
                try:
                    with self._transaction():
                        return change()
                except sqlite3.OperationalError as error:
                    if not is_full(error) or not (evict and self._events):
                        raise
            raise sqlite3.OperationalError("the disk is full")
        finally:
            self._truncate_wal()
            self._reserve.allocate()

    def _evict(self, count: int) -> None:
        with self._transaction():
            dropped = self._evict_oldest(count) if self._events else 0
        self._events -= dropped
        log.info("no space in the spool: evicted the %d oldest events", dropped)

    def _truncate_wal(self) -> None:
        """Checkpoint and truncate the WAL, which frees disk space."""
        try:
            self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        except sqlite3.OperationalError as error:
            log.debug("the WAL of the spool cannot be truncated now: %s", error)

    def _evict_oldest(self, surplus: int) -> int:
        """Delete the ``surplus`` oldest events and record a gap for each range of numbers."""
        rows = self._db.execute("SELECT seq, at_us FROM events ORDER BY seq LIMIT ?", (surplus,)).fetchall()
        for run in _contiguous_ranges(rows):
            times = [at for _, at in run]
            self._record_gap(run[0][0], run[-1][0], min(times), max(times))
        self._db.execute("DELETE FROM events WHERE seq <= ?", (rows[-1][0],))
        self._descriptions.send_again()
        return len(rows)

    def _record_gap(self, first: int, last: int, first_us: int, last_us: int) -> None:
        """Record a gap, merged with the one before if they are adjacent."""
        before = self._db.execute(
            "SELECT first_seq, first_us, last_us FROM gaps WHERE last_seq = ? AND reason = ?",
            (first - 1, GapReason.SPOOL_FULL.value),
        ).fetchone()
        if before:
            first, first_us, last_us = before[0], min(before[1], first_us), max(before[2], last_us)
        self._db.execute(
            "INSERT OR REPLACE INTO gaps VALUES (?, ?, ?, ?, ?)",
            (first, last, first_us, last_us, GapReason.SPOOL_FULL.value),
        )

    def _record_loss(self, first: datetime, last: datetime) -> None:
        """Record that an unknown number of alarms of a span is missing, under a seq of its own."""
        number = self._db.execute("INSERT INTO events (code, at_us) VALUES (0, 0)").lastrowid
        self._db.execute("DELETE FROM events WHERE seq = ?", (number,))
        span = (number, number, to_us(first), to_us(last), GapReason.SOURCE_LOST.value)
        self._db.execute("INSERT INTO gaps VALUES (?, ?, ?, ?, ?)", span)

    def _write_notes(self, appendix: Appendix) -> None:
        if appendix.skipped:
            self._set_meta("skipped", str(self.skipped + appendix.skipped))
        for key, note in (("last_skipped", appendix.last_skipped), ("warning", appendix.warning)):
            if note is not None:
                self._set_meta(key, note.model_dump_json())

    def _read_notes(self) -> None:
        self.skipped = int(self._meta("skipped") or 0)
        self.last_skipped, self.warning = (self._note(key) for key in ("last_skipped", "warning"))

    def _note(self, key: str) -> Note | None:
        text = self._meta(key)
        return None if text is None else Note.model_validate_json(text)

    def _set_meta(self, key: str, value: str) -> int:
        return self._db.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (key, value)).rowcount

    def _meta(self, key: str) -> str | None:
        row = self._db.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
        return str(row[0]) if row else None

    def _count(self, table: str) -> int:
        with closing(self._db.execute(f"SELECT count(*) FROM {table}")) as rows:  # noqa: S608 - our own names
            return int(rows.fetchone()[0])

    def _transaction(self) -> Transaction:
        return Transaction(self._db)


def _contiguous_ranges(rows: list[tuple[int, int]]) -> list[list[tuple[int, int]]]:
    runs: list[list[tuple[int, int]]] = []
    for row in rows:
        if runs and row[0] == runs[-1][-1][0] + 1:
            runs[-1].append(row)
        else:
            runs.append([row])
    return runs
