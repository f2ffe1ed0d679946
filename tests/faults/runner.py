"""Plays one row: injects its fault as often as asked, and keeps what came of it."""

import logging
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from tests.faults.environment import Broken, FaultEnvironment, Skipped, Tally
from tests.faults.registry import Effort, Fault

log = logging.getLogger(__name__)


@dataclass
class Row:
    """A fault and what came of it."""

    fault: Fault
    effort: Effort
    runs: int = 0
    tally: Tally = field(default_factory=Tally)
    recoveries: list[float] = field(default_factory=list)
    state: str = "waits"
    error: str = ""

    @property
    def failed(self) -> bool:
        return self.state == "failed"

    @property
    def skipped(self) -> bool:
        return self.state == "skipped"

    @property
    def slowest(self) -> float | None:
        return max(self.recoveries, default=None)

    def figures(self) -> dict[str, Any]:
        """Return the row as JSON has it."""
        return {
            "fault": self.fault.name,
            "runs": self.runs,
            "events": self.tally.events,
            "lost": self.tally.lost,
            "duplicated": self.tally.duplicated,
            "recovery_seconds": None if self.slowest is None else round(self.slowest, 2),
            "state": self.state,
            "error": self.error,
        }


def play(row: Row, env: FaultEnvironment, *, told: Callable[[], None] = lambda: None) -> None:
    """Play a row to its end, whatever happens; ``told`` is called whenever there is news."""
    row.tally = env.tally
    row.state = "plays"
    told()
    try:
        for seconds in row.fault.inject(env, row.effort):
            row.runs += 1
            row.recoveries.append(seconds)
            told()
    except Skipped as error:
        row.state, row.error = "skipped", str(error)
    except (Broken, pytest.fail.Exception) as error:
        row.state, row.error = "failed", str(error)
    except Exception as error:  # noqa: BLE001 - a row that breaks is a failed row, and the others go on
        row.state, row.error = "failed", f"{error!r}\n{traceback.format_exc()}"
    else:
        row.state = "failed" if row.tally.lost or row.tally.duplicated else "kept"
        if row.failed:
            row.error = f"{row.tally.lost} lost, {row.tally.duplicated} duplicated"
    told()
