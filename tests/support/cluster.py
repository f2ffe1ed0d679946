"""The service as several processes on one PostgreSQL database, each with its own folder and port."""

import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import psycopg
from typing_extensions import override

from alarmcast import Client, Unreachable
from tests.conftest import free_port, wait_until
from tests.system.conftest import COUNTED, LocalKey, Plant, Process, clean_environment
from wire.enums import ProcessRole

USUAL = {ProcessRole.INGEST: 3, ProcessRole.API: 2, ProcessRole.WORKER: 2}


@dataclass
class Member:
    """One process of the service."""

    name: str
    role: ProcessRole
    process: Process
    port: int
    data: Path

    @property
    def client(self) -> Client:
        """A client of this very process, with the key that it left in its folder."""
        alone = httpx.Limits(max_keepalive_connections=0)
        key = LocalKey(self.data / "admin.token")
        return Client(
            http=httpx.Client(base_url=f"http://127.0.0.1:{self.port}", auth=key, timeout=120, limits=alone)
        )

    @property
    def pid(self) -> int:
        """The number of its process; 0 while there is none."""
        return self.process.running.pid if self.process.running else 0

    def is_ready(self) -> bool:
        """Whether it answers, and is well."""
        try:
            return self.client.health.ready().ready
        except Unreachable:
            return False


@dataclass
class ClusterPlant(Plant):
    """A plant whose service is shared out; ``api`` asks the first process of that role."""

    database_url: str = ""
    shared_out: Mapping[ProcessRole, int] = field(default_factory=lambda: USUAL)
    members: dict[str, Member] = field(default_factory=dict)

    @override
    def __post_init__(self) -> None:
        for role, number in self.shared_out.items():
            for index in range(1, number + 1):
                self._add(role, f"{role}-{index}")
        self.api = self.of(ProcessRole.API)[0].client
        self.service = self.of(ProcessRole.API)[0].process

    def of(self, role: ProcessRole) -> list[Member]:
        """Return the processes of a role."""
        return [one for one in self.members.values() if one.role is role]

    def empty(self) -> None:
        """Forget what others have left in the database."""
        with psycopg.connect(self._address()) as connection:
            connection.execute("DROP SCHEMA public CASCADE")
            connection.execute("CREATE SCHEMA public")

    @override
    def start_service(self) -> None:
        command = [sys.executable, "-m", "service", "migrate", "--data-dir", str(self.folder / "migrate")]
        subprocess.run(command, env=clean_environment() | self._common(), check=True, capture_output=True)
        for one in self.members.values():
            one.process.start()
        for one in self.members.values():
            wait_until(one.is_ready, f"{one.name} is ready", 90)

    @override
    def stored(self, machine: str) -> list[tuple[int, int]]:
        site, name = machine.split("/")
        query = (
            "SELECT seq, code FROM events JOIN machines ON machines.id = machine_id"
            " WHERE site = %s AND machine = %s ORDER BY epoch_id, seq"
        )
        with psycopg.connect(self._address()) as connection:
            return connection.execute(query, (site, name)).fetchall()

    @override
    def counted(self) -> dict[str, int]:
        with psycopg.connect(self._address()) as connection:
            return dict(connection.execute(COUNTED).fetchall())

    def promotions(self) -> list[int]:
        """Return which versions began to serve, in that order."""
        with psycopg.connect(self._address()) as connection:
            return [row[0] for row in connection.execute("SELECT version_id FROM promotions ORDER BY id")]

    def forecasts(self) -> int:
        """Return how many forecasts are stored of the latest moment."""
        query = "SELECT count(*) FROM forecasts WHERE as_of_us = (SELECT max(as_of_us) FROM forecasts)"
        with psycopg.connect(self._address()) as connection:
            found = connection.execute(query).fetchone()
        return int(found[0]) if found else 0

    def owner(self, job: int) -> str:
        """Return who works at a job."""
        with psycopg.connect(self._address()) as connection:
            found = connection.execute("SELECT owner FROM jobs WHERE id = %s", (job,)).fetchone()
        return str(found[0]) if found else ""

    def _add(self, role: ProcessRole, name: str) -> None:
        data, port = self.folder / name, free_port()
        command = ["-m", "service", "serve", "--roles", role.value, "--data-dir", str(data), "--port", str(port)]
        process = self._process([*command, "--broker-port", str(self.broker.port)], name)
        process.environment = self._common()
        self.members[name] = Member(name, role, process, port, data)

    def _common(self) -> dict[str, str]:
        return self.environment | {"ALARMCAST_DATABASE_URL": self.database_url}

    def _address(self) -> str:
        return self.database_url.replace("+psycopg", "")
