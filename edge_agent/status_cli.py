"""``alarmcast-edge status``: show the status of agent and spool, as text or JSON."""

import json
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from shutil import get_terminal_size
from typing import Any

from edge_agent.errors import SpoolUnusable
from edge_agent.status import AgentStatus, SpoolStats, StatusFile, inspect_spool, skipped_rows
from wire.state import Note
from wire.terminal import wrap_labelled

_UNBOUNDED = 1_000_000  # columns, without a terminal


def print_status(spool: Path, *, as_json: bool) -> int:
    """Print the status; return 0 if the agent runs and is connected."""
    view = inspect_spool(spool)
    if view is None:
        raise SpoolUnusable(f"There is no spool at {spool}; name it with --spool-path or --config.")
    report = StatusFile(spool).read()
    is_ok = view.in_use and report is not None and report.connected
    if as_json:
        facts = {
            "running": view.in_use,
            "spooled": view.events,
            "transitions": view.transitions,
            "gaps": view.gaps,
            "oldest": view.oldest.isoformat() if view.oldest else None,
            "skipped": view.skipped,
            "last_skipped": _plain(view.last_skipped),
            "warning": _plain(view.warning),
        }
        # Without a running agent there is no connection.
        status = asdict(report) | ({} if view.in_use else {"connected": False}) if report else {}
        status.pop("credentials", None)
        print(json.dumps(status | facts))  # noqa: T201
    else:
        width = get_terminal_size((_UNBOUNDED, 1)).columns
        for name, text in _lines(view, report):
            print(wrap_labelled(f"{name:<11} ", text, width))  # noqa: T201
    return 0 if is_ok else 1


def _lines(view: SpoolStats, report: AgentStatus | None) -> list[tuple[str, str]]:
    oldest = f", the oldest from {view.oldest.isoformat()}" if view.oldest else ""
    among = f" ({view.transitions} cleared or acknowledged)" if view.transitions else ""
    lines = [("spool", f"{view.events} unacked events{among}{oldest}; {view.gaps} gap records")]
    if view.skipped:
        lines.append(("source", skipped_rows(view)))
    if view.warning is not None:
        lines.append(("warning", f"{view.warning.text} ({view.warning.at.isoformat(timespec='seconds')})"))
    if report is None:
        return [("agent", "running" if view.in_use else "not running"), *lines]
    running = f"running as process {report.pid}" if view.in_use else "not running"
    lines = [("machine", report.machine), ("agent", running), *lines]
    if view.in_use:
        state = "connected" if report.connected else "not connected"
        error = f": {report.error}" if report.error else ""
        lines.append(("connection", f"{state} to {report.broker} since {report.since}{error}"))
    lines.append(("last ack", _ago(report.last_ack_at)))
    if report.skew_ms is not None:
        behind = "behind" if report.skew_ms > 0 else "ahead of"
        lines.append(("clock", f"{abs(report.skew_ms)} ms {behind} the service's"))
    return lines


def _plain(note: Note | None) -> dict[str, Any] | None:
    return None if note is None else note.model_dump(mode="json")


def _ago(at: str | None) -> str:
    if at is None:
        return "none since the agent was started"
    seconds = (datetime.now(UTC) - datetime.fromisoformat(at)).total_seconds()
    return f"{at} ({max(seconds, 0):.0f} s ago)"
