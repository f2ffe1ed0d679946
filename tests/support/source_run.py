"""A source that is read into a real spool by a thread, as the agent does it."""

import sqlite3
from contextlib import closing
from pathlib import Path
from threading import Event, Thread
from typing import Any

from edge_agent.agent import read_into_spool
from edge_agent.settings import Settings, SourceKind
from edge_agent.sources.build import build_source
from edge_agent.sources.codes import CodeBook
from edge_agent.spool import Spool
from tests.conftest import wait_until
from wire.clock import PlantClock
from wire.events import AlarmEvent, Gap, TransitionKind
from wire.timestamps import from_us


def source_settings(kind: SourceKind, options: dict[str, Any], **more: Any) -> Settings:
    return Settings(site="padova", machine="filler-1", source_kind=kind, source_options=options, **more)


class SourceRun:
    """Reads a source into the spool of a folder until it is stopped; the next run continues there."""

    def __init__(self, folder: Path, settings: Settings, mapped: dict[str, int] | None = None) -> None:
        self.path = folder / "spool"
        self.spool = Spool(self.path)
        self._codes, self._stop, self._clock = CodeBook(mapped), Event(), PlantClock()
        self._codes.restore(self.spool.codes())
        self._source = build_source(settings, self._clock, self._codes)
        self._kind = settings.source_kind.value
        self._thread = Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        read_into_spool(
            self.spool,
            self._source,
            self._stop,
            wake=lambda: None,
            clock=self._clock,
            codes=self._codes,
            kind=self._kind,
        )

    @property
    def events(self) -> list[AlarmEvent]:
        with closing(sqlite3.connect(f"file:{self.path}?mode=ro", uri=True)) as database:
            rows = database.execute("SELECT seq, code, at_us FROM events WHERE kind = 0 ORDER BY seq").fetchall()
        return [AlarmEvent(seq=seq, code=code, at=from_us(at)) for seq, code, at in rows]

    @property
    def raised(self) -> list[int]:
        return self.changed(None)

    @property
    def cleared(self) -> list[int]:
        return self.changed(TransitionKind.CLEARED)

    def changed(self, kind: TransitionKind | None) -> list[int]:
        """Return the codes of the transitions of a kind, as the spool has them; None is raised."""
        with closing(sqlite3.connect(f"file:{self.path}?mode=ro", uri=True)) as database:
            query = "SELECT code FROM events WHERE kind = ? ORDER BY seq"
            return [code for (code,) in database.execute(query, (kind.number if kind else 0,))]

    @property
    def gaps(self) -> list[Gap]:
        return self.spool.pending(0, 100).gaps

    @property
    def warning(self) -> str:
        return self.spool.warning.text if self.spool.warning else ""

    @property
    def last_skipped(self) -> str:
        return self.spool.last_skipped.text if self.spool.last_skipped else ""

    def until(self, condition: Any, what: str) -> "SourceRun":
        wait_until(lambda: condition(self) or not self._thread.is_alive(), what)
        assert condition(self), what
        return self

    def until_raised(self, *codes: int) -> "SourceRun":
        return self.until(lambda run: len(run.raised) >= len(codes), f"{codes} are raised")

    def until_read(self) -> "SourceRun":
        """Wait until the source was read once."""
        return self.until(lambda run: run.spool.bookmark is not None, "the source was read")

    def stop(self) -> "SourceRun":
        self._stop.set()
        self._thread.join()
        return self

    def close(self) -> None:
        self.stop()
        self.spool.close()
