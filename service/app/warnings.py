"""Warnings about agents, machine limits, backups and certificates, for status and the page."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path

from service.database.backup import BackupRecord, read_record, record_start
from service.errors import InputRejected, Unavailable
from service.machines.limits_store import ExcessStore
from service.machines.models import Agent, Excess, ExcessKind, MachineLimits
from service.settings import Settings
from wire.identity import MachineId
from wire.state import Note

WARNING_TTL = timedelta(days=1)
EXPIRES_SOON = timedelta(days=30)
_MAX_AGENTS = 5  # named in a warning
_MAX_MACHINES = 3
_BACKUP_COMMAND = "Create one while the service runs: alarmcast admin backup FOLDER"
_CERTIFICATES = {
    "api": "The API's certificate",
    "client": "The service's client certificate at the broker",
    "broker_ca": "The CA of the broker's certificate",
    "broker": "The broker's certificate",
}


def agent_warnings(agents: Mapping[MachineId, Agent], now: datetime) -> dict[str, str]:
    """Return a sentence for each kind of recent report of agents."""
    warnings: dict[str, str] = {}
    unreadable = {
        name: f"{agent.skipped:,} rows, last: {agent.last_skipped.text}"
        for name, agent in agents.items()
        if agent.last_skipped and _is_recent(agent.last_skipped, now)
    }
    if unreadable:
        sources = len(unreadable)
        subject = "The source of 1 machine has" if sources == 1 else f"The sources of {sources} machines have"
        warnings["unreadable_rows"] = (
            f"{subject} rows that cannot be read as alarms, and they are not stored: {_listed(unreadable)}. "
            "Check the format of the source: a time like 2026-11-16 08:00:00, a comma, a whole number."
        )
    reported = {
        name: agent.warning.text
        for name, agent in agents.items()
        if agent.warning and _is_recent(agent.warning, now)
    }
    if reported:
        warnings["agents"] = f"Agents report: {_listed(reported)}."
    duplicates = [
        agent.duplicate.text for agent in agents.values() if agent.duplicate and _is_recent(agent.duplicate, now)
    ]
    if duplicates:
        warnings["duplicate_agents"] = " ".join(duplicates[:_MAX_AGENTS])
    return warnings


def _is_recent(note: Note, now: datetime) -> bool:
    return now - note.at < WARNING_TTL


def _listed(reports: Mapping[MachineId, str]) -> str:
    named = [f"{machine} ({text.rstrip('.')})" for machine, text in list(reports.items())[:_MAX_AGENTS]]
    more = len(reports) - len(named)
    return ", ".join(named) + (f" and {more} more" if more else "")


def limit_warnings(
    store: ExcessStore, limits: MachineLimits, now: datetime, can_see: Callable[[str], bool]
) -> dict[str, str]:
    """Return a sentence for each exceeded limit; items of no machine are shown to everyone."""
    try:
        excesses = store.since(now - WARNING_TTL)
    except Unavailable:
        return {}  # reported as an error of the database
    visible = [excess for excess in excesses if excess.machine is None or can_see(excess.machine.site)]
    warnings: dict[str, str] = {}
    for kind, (name, sentence) in _limit_sentences(limits).items():
        of_kind = [excess for excess in visible if excess.kind is kind]
        if of_kind:
            warnings[name] = sentence.format(names=_machine_names(of_kind))
    return warnings


def _limit_sentences(limits: MachineLimits) -> dict[ExcessKind, tuple[str, str]]:
    gaps = (
        f"More than {limits.gaps:,} gaps of one machine are not kept one by one, and their time counts as not "
        "observed: {names}. Check whether the agent's spool is too small, and who publishes in its name."
    )
    epochs = (
        f"A machine may have {limits.epochs:,} spools and history files. Events of further ones are neither "
        "stored nor acked, so that their agents keep them: {names}. Make sure that the agent keeps its data "
        "folder; if the old spools are not needed, erase the machine and enrol it again."
    )
    quarantine = (
        f"The quarantine keeps {limits.quarantined:,} items or {limits.quarantined_bytes // 1_000_000} MB of one "
        "machine. Further rejected items are only counted: {names}. Correct the sender."
    )
    unenrolled = (
        f"Of the machines that publish without being enrolled only the newest {limits.unenrolled:,} are listed; "
        "others were left out: {names}. Find who publishes, and let only known machines use the broker: see "
        "broker_dynamic_security."
    )
    codes = (
        f"A machine may describe {limits.codes:,} codes that are not in the catalogue. Further ones "
        "have no text: {names}. Check whether its alarm names contain values that change."
    )
    return {
        ExcessKind.GAPS: ("too_many_gaps", gaps),
        ExcessKind.EPOCHS: ("too_many_epochs", epochs),
        ExcessKind.QUARANTINE: ("quarantine_full", quarantine),
        ExcessKind.UNENROLLED: ("too_many_unenrolled", unenrolled),
        ExcessKind.CODES: ("too_many_codes", codes),
    }


def _machine_names(excesses: Sequence[Excess]) -> str:
    named = [
        f"{excess.machine or 'no known machine'} ({excess.items:,} since {excess.since:%Y-%m-%d})"
        for excess in excesses[:_MAX_MACHINES]
    ]
    more = len(excesses) - len(named)
    return ", ".join([*named, *([f"{more} more"] if more else [])])


@dataclass(frozen=True)
class BackupWatch:
    """Age and result of the last backup of a SQLite database; backups of PostgreSQL are not known."""

    settings: Settings
    now: Callable[[], datetime]

    @property
    def applies(self) -> bool:
        return self.settings.database_url is None

    @property
    def record(self) -> BackupRecord:
        return read_record(self.settings.data_dir)

    @property
    def max_age(self) -> timedelta | None:
        hours = self.settings.backup_max_age_hours
        return timedelta(hours=hours) if hours else None

    def begin(self) -> None:
        """Record the first start without a backup."""
        if self.applies:
            with suppress(OSError):
                record_start(self.settings.data_dir, self.now())

    def warnings(self) -> dict[str, str]:
        if not self.applies or self.max_age is None:
            return {}
        record = self.record
        if record.failed_at is not None:
            made = record.made_at
            last = f"the last good one is of {made:%Y-%m-%d %H:%M} UTC" if made else "there is no good one"
            failed = f"The backup at {record.failed_at:%Y-%m-%d %H:%M} UTC failed, and {last}."
            return {"backup": f"{failed} {record.error or ''} {_BACKUP_COMMAND}"}
        since = record.made_at or record.since
        if since is None or self.now() - since <= self.max_age:
            return {}
        subject = "The last backup is" if record.made_at else "There is no backup, and the database is"
        hours = (self.now() - since) // timedelta(hours=1)
        limit = f"{self.settings.backup_max_age_hours:g}"
        return {"backup": f"{subject} {hours} hours old; backup_max_age_hours is {limit}. {_BACKUP_COMMAND}"}


@dataclass
class CertificateExpiry:
    """Expiry of the certificates in use, from files (read again when changed) and the TLS handshake."""

    settings: Settings
    broker: Callable[[], datetime | None]
    now: Callable[[], datetime]
    _cache: dict[Path, tuple[int, datetime | None]] = field(default_factory=dict)

    def warnings(self) -> dict[str, str]:
        now = self.now()
        expiring = [
            f"{_CERTIFICATES[use]} {'expired' if end <= now else 'expires'} on {end:%Y-%m-%d}"
            for use, end in self.ends().items()
            if end - now < EXPIRES_SOON
        ]
        if not expiring:
            return {}
        return {"certificates": f"{'; '.join(expiring)}. Renew in time: alarmcast admin tls-init FOLDER --renew"}

    def ends(self) -> dict[str, datetime]:
        """Return the expiry of each certificate by its use."""
        settings = self.settings
        files = {
            "api": settings.tls_cert,
            "client": settings.broker_tls_cert,
            "broker_ca": settings.broker_tls_ca if settings.broker_tls else None,
        }
        ends = {use: None if path is None else self._end(path) for use, path in files.items()}
        return {use: end for use, end in (ends | {"broker": self.broker()}).items() if end is not None}

    def _end(self, path: Path) -> datetime | None:
        from service.broker_access.certificates import expires_at  # noqa: PLC0415 - slow import, rarely needed

        try:
            changed = path.stat().st_mtime_ns
            if path not in self._cache or self._cache[path][0] != changed:
                self._cache[path] = (changed, expires_at(path))
        except (OSError, InputRejected):
            return None  # reported by the component that uses the file
        return self._cache[path][1]
