"""Sources that keep their alarms: journal tables, log files, and clients that send again."""

import http.client
import json
import os
import shutil
import signal
import sqlite3
import subprocess
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from tempfile import mkdtemp
from typing import Any
from uuid import uuid4

import psycopg

from edge_agent.settings import SourceKind
from tests.conftest import free_port, postgresql_programs, require, wait_until
from tests.support.rig import Rig
from tests.support.source_run import SourceRun

TOKEN = "correct horse"  # noqa: S105
_TABLE = "CREATE TABLE journal (id INTEGER PRIMARY KEY, at TEXT, code TEXT)"


class SqlRig(Rig):
    kind = SourceKind.SQL
    keeps = True
    _key = 0

    def table(self, url: str) -> dict[str, Any]:
        names = {"table": "journal", "key": "id", "time": "at", "code": "code"}
        return {"url": url, "poll_seconds": 0.01, "start": "beginning", **names}

    def execute(self, statement: str, rows: list[tuple[Any, ...]] | None = None) -> None:
        raise NotImplementedError

    def raise_alarm(self, code: int) -> None:
        self._insert([str(code)])

    def flood(self, count: int, run: SourceRun) -> list[int]:
        del run
        codes = list(range(2, count + 2))
        self._insert([str(code) for code in codes])
        return codes

    def corrupt(self) -> None:
        self._insert([""])

    def remove(self) -> None:
        self.execute("ALTER TABLE journal RENAME COLUMN code TO number")

    def restore(self) -> None:
        self.execute("ALTER TABLE journal RENAME COLUMN number TO code")

    def _insert(self, codes: list[str]) -> None:
        at = datetime.now(UTC).isoformat()
        rows = [(self._key + number, at, code) for number, code in enumerate(codes, 1)]
        self._key += len(rows)
        self.execute("INSERT INTO journal VALUES (?, ?, ?)", rows)


class SqliteRig(SqlRig):
    """A journal in a file on a share, which ``kill`` unmounts."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / "journal.db"
        self.options = self.table(f"sqlite:///{self._file}")
        self.execute(_TABLE)

    def execute(self, statement: str, rows: list[tuple[Any, ...]] | None = None) -> None:
        with closing(sqlite3.connect(self._file)) as database, database:
            database.executemany(statement, rows) if rows else database.execute(statement)

    def kill(self) -> None:
        if self._file.exists():
            self._file.rename(self._file.with_suffix(".away"))

    def start(self) -> None:
        shutil.copy(self._file.with_suffix(".away"), self._file)


class PostgresqlRig(SqlRig):
    """A cluster of its own, which ``kill`` ends without a shutdown."""

    def __init__(self, _folder: Path) -> None:
        programs = postgresql_programs()
        require(programs, "PostgreSQL's server (initdb, postgres)")
        assert programs
        self._programs, self._port = programs, free_port()
        self._user = "postgres" if os.getuid() == 0 else None
        self._data = Path(mkdtemp(prefix="alarmcast-journal-"))
        if self._user:
            shutil.chown(self._data, self._user)
        initdb: list[str | Path] = [
            programs / "initdb",
            "-D",
            self._data,
            "-A",
            "trust",
            "-U",
            "scada",
            "--no-sync",
        ]
        subprocess.run(initdb, user=self._user, cwd="/", check=True, capture_output=True)
        self._server: subprocess.Popen[bytes] | None = None
        self.start()
        self.execute(_TABLE)
        self.execute("CREATE ROLE agent LOGIN")
        self.execute("GRANT SELECT ON journal TO agent")
        self.options = self.table(f"postgresql://agent@127.0.0.1:{self._port}/postgres")

    def execute(self, statement: str, rows: list[tuple[Any, ...]] | None = None) -> None:
        url = f"postgresql://scada@127.0.0.1:{self._port}/postgres"
        with psycopg.connect(url) as connection, connection.cursor() as cursor:
            query = statement.replace("?", "%s").encode()
            cursor.executemany(query, rows) if rows else cursor.execute(query)

    def kill(self) -> None:
        if self._server is not None:
            self._server.send_signal(signal.SIGQUIT)
            self._server.wait()
            self._server = None

    def start(self) -> None:
        options = ["-p", str(self._port), "-c", "listen_addresses=127.0.0.1", "-c", "unix_socket_directories="]
        command = [str(self._programs / "postgres"), "-D", str(self._data), *options]
        quiet = subprocess.DEVNULL
        self._server = subprocess.Popen(command, user=self._user, cwd="/", stdout=quiet, stderr=quiet)
        ready = [str(self._programs / "pg_isready"), "-h", "127.0.0.1", "-p", str(self._port), "-q"]
        wait_until(lambda: subprocess.run(ready, check=False).returncode == 0, "PostgreSQL answers")

    def revoke(self) -> None:
        self.execute("ALTER ROLE agent NOLOGIN")
        self.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'agent'")

    def permit(self) -> None:
        self.execute("ALTER ROLE agent LOGIN")

    def close(self) -> None:
        self.kill()
        shutil.rmtree(self._data)


class HttpRig(Rig):
    """A client that sends each request until it is answered, with the same id."""

    kind, keeps, password = SourceKind.HTTP, True, TOKEN

    def __init__(self, _folder: Path) -> None:
        self._port = free_port()
        self.options = {"listen": f"127.0.0.1:{self._port}"}

    def raise_alarm(self, code: int) -> None:
        self._send([code])

    def flood(self, count: int, run: SourceRun) -> list[int]:
        del run
        for first in range(2, count + 2, 500):
            self._send(list(range(first, first + 500)))
        return list(range(2, count + 2))

    def _send(self, codes: list[int]) -> None:
        key = str(uuid4())
        wait_until(lambda: self._post([{"alarm": code} for code in codes], key) == 200, "the request is answered")

    def corrupt(self) -> None:
        assert self._post({"alarm": {"number": 1}}) == 422

    def _post(self, body: Any, key: str | None = None, token: str = TOKEN) -> int | None:
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=20)
        headers = {"Authorization": f"Bearer {token}"} | ({"Idempotency-Key": key} if key else {})
        try:
            connection.request("POST", "/", json.dumps(body), headers)
            return connection.getresponse().status
        except (OSError, http.client.HTTPException):
            return None
        finally:
            connection.close()

    def close(self) -> None:
        pass


class TailRig(Rig):
    """A log with a header; a program of the plant appends rows."""

    kind, keeps = SourceKind.TAIL, True

    def __init__(self, folder: Path) -> None:
        self.path = folder / "alarms.csv"
        self.options = {"time": "at", "code": "code"}
        self._create("at,code")

    def _create(self, header: str) -> None:
        assert self.path is not None
        if self.path.exists():
            self.path.rename(self.path.with_name(f"{self.path.name}.{datetime.now(UTC):%Y%m%d%H%M%S%f}"))
        self.path.write_text(f"{header}\n")

    def raise_alarm(self, code: int) -> None:
        self._append([str(code)])

    def flood(self, count: int, run: SourceRun) -> list[int]:
        del run
        codes = list(range(2, count + 2))
        self._append([str(code) for code in codes])
        return codes

    def _append(self, codes: list[str]) -> None:
        assert self.path is not None
        at = datetime.now(UTC).isoformat()
        with self.path.open("a") as log:
            log.write("".join(f"{at},{code}\n" for code in codes))

    def remove(self) -> None:
        """Rotate to a file without the column, which has a row."""
        self._create("at,number")
        self._append(["1600"])

    def restore(self) -> None:
        self._create("at,code")

    def corrupt(self) -> None:
        self._append([""])

    def close(self) -> None:
        pass
