"""One interface to the servers of all sources: raise alarms, kill, revoke, remove and corrupt."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from edge_agent.settings import SourceKind
from tests.support.source_run import SourceRun


class Rig:
    """A source whose alarms have the codes 1 to 1,600.

    ``keeps``: the source stores alarms while the agent is away. ``password`` is the agent's.
    """

    kind: SourceKind
    keeps = False
    password: str | None = None
    path: Path | None = None
    options: dict[str, Any]

    def raise_alarm(self, code: int) -> None:
        raise NotImplementedError

    def flood(self, count: int, run: SourceRun) -> list[int]:
        """Raise so many alarms as fast as the source takes them, and return their codes."""
        del run
        codes = list(range(2, count + 2))
        for code in codes:
            self.raise_alarm(code)
        return codes

    def kill(self) -> None:
        raise NotImplementedError

    def start(self) -> None:
        raise NotImplementedError

    def revoke(self) -> None:
        """Withdraw the agent's permission while it is connected."""
        raise NotImplementedError

    def permit(self) -> None:
        raise NotImplementedError

    def remove(self) -> None:
        """Remove what the agent reads: a node, a block, a column."""
        raise NotImplementedError

    def restore(self) -> None:
        raise NotImplementedError

    def corrupt(self) -> None:
        """Send a value of a wrong type."""
        raise NotImplementedError

    def close(self) -> None:
        self.kill()


def parts(count: int, size: int, run: SourceRun) -> Iterator[list[int]]:
    """Yield codes from 2 on in parts; each is taken before the next."""
    before = len(run.raised)
    for first in range(2, count + 2, size):
        part = list(range(first, first + size))
        yield part
        before += size
        run.until(lambda run, count=before: len(run.raised) >= count, "the part is taken")
