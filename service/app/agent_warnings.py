"""What agents have reported within a day that a person should look at, in sentences."""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta

from service.errors import Unavailable
from service.machines.limits_store import ExcessStore
from service.machines.models import Agent, Excess, ExcessKind, MachineLimits
from wire.identity import MachineId
from wire.state import Note

LASTS = timedelta(days=1)
_MOST = 5  # machines that are named


def agent_warnings(agents: Mapping[MachineId, Agent], now: datetime) -> dict[str, str]:
    """Return a sentence for each kind of report; a note older than a day is no warning any more."""
    warnings: dict[str, str] = {}
    unread = {name: one for name, one in agents.items() if _recent(one.last_skipped, now)}
    if unread:
        listed = _listed({name: _skipped(one) for name, one in unread.items()})
        warnings["unread_rows"] = (
            f"{_machines(len(unread))} rows that cannot be read as alarms, and they are not stored: {listed}. "
            "Check the format of the source: a time like 2026-11-16 08:00:00, a comma, a whole number."
        )
    warned = {name: one.warning.text for name, one in agents.items() if one.warning and _recent(one.warning, now)}
    if warned:
        warnings["agents"] = f"Agents report: {_listed(warned)}."
    rivals = [one.rival.text for one in agents.values() if one.rival and _recent(one.rival, now)]
    if rivals:
        warnings["two_agents"] = " ".join(rivals[:_MOST])
    return warnings


def _recent(note: Note | None, now: datetime) -> bool:
    return note is not None and now - note.at < LASTS


def _skipped(agent: Agent) -> str:
    return f"{agent.skipped:,} rows, last: {agent.last_skipped.text if agent.last_skipped else ''}"


def _machines(count: int) -> str:
    return "The source of 1 machine has" if count == 1 else f"The sources of {count} machines have"


def _listed(reports: Mapping[MachineId, str]) -> str:
    named = [f"{machine} ({text.rstrip('.')})" for machine, text in list(reports.items())[:_MOST]]
    more = len(reports) - len(named)
    return ", ".join(named) + (f" and {more} more" if more else "")


_RECENT = timedelta(days=1)
_NAMED = 3  # machines that a warning names


def excess_warnings(
    store: ExcessStore, limits: MachineLimits, now: datetime, sees: Callable[[str], bool]
) -> dict[str, str]:
    """Say what was left out of which machines; messages of no machine are everybody's."""
    try:
        found = [one for one in store.since(now - _RECENT) if one.machine is None or sees(one.machine.site)]
    except Unavailable:
        return {}  # that the database is away is said elsewhere
    told: dict[str, str] = {}
    for kind, (about, sentence) in _words(limits).items():
        of_kind = [one for one in found if one.kind is kind]
        if of_kind:
            told[about] = sentence.format(names=_names(of_kind))
    return told


def _words(limits: MachineLimits) -> dict[ExcessKind, tuple[str, str]]:
    gaps = (
        f"More than {limits.gaps:,} gaps of one machine are not kept one by one, and their time counts as not "
        "observed: {names}. Check whether the agent's spool is too small, and who speaks in its name."
    )
    epochs = (
        f"A machine may have {limits.epochs:,} spools and history files. Events of further ones are neither "
        "stored nor acked, so that their agents keep them: {names}. See that the agent keeps its data folder; "
        "if the old spools are not needed, erase the machine and enrol it again."
    )
    quarantine = (
        f"The quarantine keeps {limits.quarantined:,} items or {limits.quarantined_bytes // 1_000_000} MB of one "
        "machine. What else is refused is only counted: {names}. Correct the sender."
    )
    unenrolled = (
        f"Of the machines that publish without being enrolled only the newest {limits.unenrolled:,} are listed; "
        "others were left out: {names}. Find who publishes, and let only known machines use the broker: see "
        "broker_dynamic_security."
    )
    return {
        ExcessKind.GAPS: ("too_many_gaps", gaps),
        ExcessKind.EPOCHS: ("too_many_epochs", epochs),
        ExcessKind.QUARANTINE: ("quarantine_full", quarantine),
        ExcessKind.UNENROLLED: ("too_many_unenrolled", unenrolled),
    }


def _names(found: Sequence[Excess]) -> str:
    named = [
        f"{one.machine or 'no known machine'} ({one.items:,} since {one.since:%Y-%m-%d})" for one in found[:_NAMED]
    ]
    more = len(found) - len(named)
    return ", ".join([*named, *([f"{more} more"] if more else [])])
