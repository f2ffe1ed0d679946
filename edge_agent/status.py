"""The status file beside the spool, written by the agent and read by ``alarmcast-edge status``."""

import hashlib
import json
import logging
import os
import secrets
import sqlite3
from contextlib import closing, suppress
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path

from edge_agent.file_lock import is_locked
from wire.state import Note
from wire.timestamps import from_us

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class AgentStatus:
    """The status of a running agent; times are ISO 8601."""

    pid: int
    machine: str
    broker: str
    connected: bool
    since: str
    error: str | None = None
    last_ack_at: str | None = None
    skew_ms: int | None = None
    window: int | None = None
    credentials: str | None = None  # a fingerprint of user name and password


class StatusFile:
    """Written atomically; on a full disk the old one stays."""

    def __init__(self, spool: Path) -> None:
        self._path = spool.with_name(f"{spool.name}.status")
        self._last: AgentStatus | None = None

    def write(self, report: AgentStatus) -> None:
        """Replace the file if the status has changed."""
        if report == self._last:
            return
        try:
            temporary = self._path.with_name(f"{self._path.name}.new")
            temporary.write_text(json.dumps(asdict(report)), encoding="utf-8")
            temporary.replace(self._path)
        except OSError as error:
            log.debug("cannot write %s now: %s", self._path, error)
            return
        self._last = report

    def read(self) -> AgentStatus | None:
        """Return the last status, if it can be read."""
        with suppress(OSError, ValueError, TypeError):
            return AgentStatus(**json.loads(self._path.read_text(encoding="utf-8")))
        return None


def fingerprint(username: str | None, password: str | None, salt: str | None = None) -> str:
    """Return a short salted hash: enough to notice another password, too short to guess one."""
    salt = salt or secrets.token_hex(8)
    secret = f"{username or ''}\n{password or ''}".encode()
    return f"{salt}:{hashlib.scrypt(secret, salt=salt.encode(), n=2**12, r=8, p=1).hex()[:4]}"


def has_fingerprint(known: str, username: str | None, password: str | None) -> bool:
    """Return whether credentials match a fingerprint."""
    return fingerprint(username, password, known.partition(":")[0]) == known


@dataclass(frozen=True)
class SpoolStats:
    """The content of a spool, read while an agent may use it."""

    events: int
    gaps: int
    oldest: datetime | None
    in_use: bool
    skipped: int = 0
    last_skipped: Note | None = None
    warning: Note | None = None
    source: str | None = None  # the kind of the source
    transitions: int = 0  # of the events: cleared and acknowledged alarms, and stops


def inspect_spool(spool: Path) -> SpoolStats | None:
    """Return the content of a spool, read-only; None if there is no spool."""
    if not spool.exists():
        return None
    try:
        with closing(sqlite3.connect(f"{spool.absolute().as_uri()}?mode=ro", uri=True, timeout=5)) as database:
            events, oldest = database.execute("SELECT count(*), min(seq) FROM events").fetchone()
            gaps = database.execute("SELECT count(*) FROM gaps").fetchone()[0]
            at = database.execute("SELECT at_us FROM events WHERE seq = ?", (oldest,)).fetchone()
            columns = {name for _, name, *_ in database.execute("PRAGMA table_info(events)")}
            query = "SELECT count(*) FROM events WHERE kind > 0"
            transitions = database.execute(query).fetchone()[0] if "kind" in columns else 0
            meta = dict(database.execute("SELECT key, value FROM meta").fetchall())
    except sqlite3.Error:
        return None
    return SpoolStats(
        events,
        gaps,
        from_us(at[0]) if at else None,
        _in_use(spool),
        int(meta.get("skipped", 0)),
        _note(meta.get("last_skipped")),
        _note(meta.get("warning")),
        meta.get("bookmark", "").partition(" ")[0] or None,
        transitions,
    )


def skipped_rows(view: SpoolStats) -> str:
    """Return the message about unreadable rows of the source."""
    last = view.last_skipped
    shown = f"; last: {last.text} ({last.at.isoformat(timespec='seconds')})" if last else ""
    hint = (
        ""
        if view.source and view.source != "tail"
        else (
            "; check the source's format: timestamp,alarm,serial with a time like 2026-11-16 08:00:00 and a whole "
            "number as alarm, or name its columns in [tail]"
        )
    )
    return f"{view.skipped} rows of the source could not be read{shown}{hint}"


def _note(text: str | None) -> Note | None:
    return None if text is None else Note.model_validate_json(text)


def _in_use(spool: Path) -> bool:
    try:
        guard = os.open(spool.with_name(f"{spool.name}.lock"), os.O_RDWR)
    except OSError:
        return False
    try:
        return is_locked(guard)
    finally:
        os.close(guard)
