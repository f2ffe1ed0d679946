"""What running programs take: CPU time and memory, their children included, and what they tell Prometheus."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

import httpx
import psutil
from prometheus_client.parser import text_string_to_metric_families

from benchmarks.servers import HOST, Serving
from service.database.engine import Database


@dataclass(frozen=True)
class Taken:
    """CPU seconds since its start, and megabytes now."""

    cpu_seconds: float
    megabytes: float


def taken(pid: int) -> Taken:
    """Return what a program and all it has started have taken, those that have ended included."""
    root = psutil.Process(pid)
    times = root.cpu_times()
    cpu, resident = sum(times[:4]), root.memory_info().rss  # its own, and of children that have ended
    for child in root.children(recursive=True):
        try:
            cpu += sum(child.cpu_times()[:4])
            resident += child.memory_info().rss
        except psutil.NoSuchProcess:  # it ended between the two looks, and its parent has its time by now
            continue
    return Taken(cpu, resident / 1e6)


def child_named(name: str) -> int:
    """Return the process id of a program that this one has started."""
    found = [child.pid for child in psutil.Process().children() if child.name() == name]
    if len(found) != 1:
        raise RuntimeError(f"{len(found)} programs called {name} were started here; one was expected")
    return found[0]


def database_server(database: Database) -> int | None:
    """Return the process id of PostgreSQL's server if it runs on this host; SQLite has none."""
    if database.is_sqlite:
        return None
    with database.read() as connection:
        backend = int(connection.exec_driver_sql("SELECT pg_backend_pid()").scalar_one())
    return psutil.Process(backend).ppid() if psutil.pid_exists(backend) else None


def counters(services: Iterable[Serving]) -> Counter[str]:
    """Return what services tell Prometheus, added up, by name and labels."""
    sums: Counter[str] = Counter()
    for service in services:
        headers = {"Authorization": f"Bearer {service.key}"}
        answer = httpx.get(f"http://{HOST}:{service.port}/metrics", headers=headers, timeout=60)
        for family in text_string_to_metric_families(answer.raise_for_status().text):
            for sample in family.samples:
                labels = ",".join(sample.labels.values())
                sums[f"{sample.name}{{{labels}}}" if labels else sample.name] += sample.value  # type: ignore[assignment]
    return sums
