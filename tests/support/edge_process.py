"""A real agent without a broker: all its events stay in its spool."""

import json
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

from edge_agent.settings import SourceKind
from edge_agent.spool import Spool
from edge_agent.status import inspect_spool
from tests.conftest import free_port, wait_until
from tests.system.conftest import clean_environment
from wire.events import AlarmEvent, Gap


class EdgeProcess:
    """An agent that a test may kill and start again on the same spool."""

    def __init__(
        self,
        folder: Path,
        kind: SourceKind,
        options: dict[str, Any],
        *,
        path: Path | None = None,
        password: str | None = None,
    ) -> None:
        self.folder, self.spool = folder, folder / "spool"
        self._process: subprocess.Popen[bytes] | None = None
        settings = {
            "site": "padova",
            "machine": "filler-1",
            "broker_port": str(free_port()),
            "spool_path": str(self.spool),
            "source_kind": kind.value,
            "source_options": json.dumps(options),
            "source_path": str(path) if path else None,
            "source_password": password,
        }
        given = {f"ALARMCAST_EDGE_{name.upper()}": value for name, value in settings.items() if value is not None}
        self._environment = clean_environment() | given

    def start(self) -> None:
        with (self.folder / "agent.log").open("ab") as log:
            command = [sys.executable, "-m", "edge_agent", "run"]
            self._process = subprocess.Popen(command, stderr=log, env=self._environment)

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def stored(self) -> int:
        view = inspect_spool(self.spool)
        return view.events if view else 0

    def has(self, code: int) -> bool:
        with closing(sqlite3.connect(f"file:{self.spool}?mode=ro", uri=True)) as database:
            return bool(database.execute("SELECT count(*) FROM events WHERE code = ?", (code,)).fetchone()[0])

    def until_stored(self, count: int) -> None:
        wait_until(lambda: self.stored() >= count, f"{count} events are stored")

    def content(self) -> tuple[list[AlarmEvent], list[Gap]]:
        """Return events and gaps; the agent must not be running."""
        spool = Spool(self.spool)
        events, gaps = spool.pending(0, 100_000).events, spool.pending(0, 100).gaps
        spool.close()
        return events, gaps
