"""What agents have reported within a day that a person should look at, in sentences."""

from collections.abc import Mapping
from datetime import datetime, timedelta

from service.core.machine import Agent
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
