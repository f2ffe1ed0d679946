"""Faults of each source: an alarm is stored once, or its time is in a gap."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from edge_agent.settings import Settings
from tests.conftest import wait_until
from tests.support.broker_rigs import MqttRig, SparkplugRig
from tests.support.controller_rigs import ModbusRig, OpcuaConditions, OpcuaPackml, OpcuaRig, OpcuaTags, S7Rig
from tests.support.edge_process import EdgeProcess
from tests.support.journal_rigs import HttpRig, PostgresqlRig, SqliteRig, TailRig
from tests.support.rig import Rig
from tests.support.source_run import SourceRun, source_settings
from wire.events import AlarmEvent, Gap

PRIMER = 1  # raised until the source is read
SOURCES: dict[str, Any] = {
    "opcua tags": OpcuaTags,
    "opcua packml": OpcuaPackml,
    "opcua conditions": OpcuaConditions,
    "modbus": ModbusRig,
    "s7": S7Rig,
    "sparkplug": SparkplugRig,
    "mqtt": MqttRig,
    "sql sqlite": SqliteRig,
    "sql postgresql": PostgresqlRig,
    "http": HttpRig,
    "tail": TailRig,
}


@pytest.fixture(scope="module", autouse=True)
def opcua_server() -> Iterator[None]:
    yield
    OpcuaRig.close_server()


@pytest.fixture
def rig(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Rig]:
    made: Rig = SOURCES[request.param](tmp_path)
    yield made
    made.close()


def sources(*without: str) -> pytest.MarkDecorator:
    """Run a test with all sources but those to which its fault cannot happen."""
    return pytest.mark.parametrize("rig", [name for name in SOURCES if name not in without], indirect=True)


@dataclass
class Load:
    """Raises alarms with rising codes and remembers when."""

    rig: Rig
    times: dict[int, tuple[datetime, datetime]] = field(default_factory=dict)

    def raise_alarms(self, count: int) -> int:
        """Raise so many alarms, and return the code of the last."""
        code = max(self.times, default=PRIMER)
        for _ in range(count):
            code += 1
            before = datetime.now(UTC)
            self.rig.raise_alarm(code)
            self.times[code] = (before, datetime.now(UTC))
        return code

    def until_read(self, has: Callable[[int], bool]) -> None:
        """Raise alarms until the source is read again, and wait for the last of them."""
        first = self.raise_alarms(1)
        wait_until(lambda: any(map(has, range(first, self.raise_alarms(1)))), "a new alarm is stored")
        last = self.raise_alarms(10)
        wait_until(lambda: has(last), "the last alarm is stored")

    def check(self, events: list[AlarmEvent], gaps: list[Gap]) -> None:
        """Assert that no alarm is stored twice, and each is stored or in a gap."""
        stored = [event.code for event in events if event.code != PRIMER]
        assert sorted(stored) == sorted(set(stored))
        in_no_gap = [
            code
            for code in set(self.times) - set(stored)
            if not any(gap.first_at <= self.times[code][0] and self.times[code][1] <= gap.last_at for gap in gaps)
        ]
        assert in_no_gap == []


def settings_of(rig: Rig) -> Settings:
    return source_settings(rig.kind, rig.options, source_path=rig.path, source_password=rig.password)


def primed(rig: Rig, stored: Callable[[], int]) -> None:
    def prime() -> int:
        rig.raise_alarm(PRIMER)
        return stored()

    wait_until(prime, "the source is read")


@pytest.fixture
def run(rig: Rig, tmp_path: Path) -> Iterator[SourceRun]:
    made = SourceRun(tmp_path, settings_of(rig))
    primed(rig, lambda: len(made.raised))
    yield made
    made.close()


def cannot_read(run: SourceRun) -> bool:
    return "Cannot read" in run.warning


@sources("http", "tail")
def test_server_is_killed_under_load_and_started_again(rig: Rig, run: SourceRun) -> None:
    load = Load(rig)
    load.raise_alarms(40)
    rig.kill()
    run.until(cannot_read, "there is a warning")
    rig.start()
    load.until_read(lambda code: code in run.raised)
    load.check(run.events, run.gaps)
    assert bool(run.gaps) is not isinstance(rig, SqliteRig | PostgresqlRig)


@sources()
def test_agent_is_killed_under_load_and_started_again(rig: Rig, tmp_path: Path) -> None:
    agent = EdgeProcess(tmp_path, rig.kind, rig.options, path=rig.path, password=rig.password)
    load = Load(rig)
    try:
        agent.start()
        primed(rig, agent.stored)
        load.raise_alarms(40)
        wait_until(lambda: any(map(agent.has, load.times)), "some are stored")
        agent.kill()
        if not isinstance(rig, HttpRig):
            load.raise_alarms(10)
        agent.start()
        load.until_read(agent.has)
    finally:
        agent.kill()
    events, gaps = agent.content()
    load.check(events, gaps)
    assert bool(gaps) is not rig.keeps


@pytest.mark.parametrize("rig", ["opcua tags", "sparkplug", "mqtt", "sql postgresql"], indirect=True)
def test_credentials_are_revoked_and_granted_again(rig: Rig, run: SourceRun) -> None:
    load = Load(rig)
    load.raise_alarms(10)
    rig.revoke()
    run.until(cannot_read, "there is a warning")
    rig.permit()
    load.until_read(lambda code: code in run.raised)
    load.check(run.events, run.gaps)
    assert bool(run.gaps) is not rig.keeps


@sources("opcua conditions", "mqtt", "http")
def test_what_is_read_disappears_and_comes_back(rig: Rig, run: SourceRun) -> None:
    load = Load(rig)
    load.raise_alarms(5)
    load.until_read(lambda code: code in run.raised)
    rig.remove()
    run.until(lambda run: run.spool.skipped or cannot_read(run), "it is reported")
    rig.restore()
    load.until_read(lambda code: code in run.raised)
    load.check(run.events, run.gaps)
    assert bool(run.gaps) is not rig.keeps


@sources()
def test_value_of_a_wrong_type_is_counted_and_does_not_stop_the_rest(rig: Rig, run: SourceRun) -> None:
    rig.corrupt()
    run.until(lambda run: run.spool.skipped == 1, "it is counted")
    load = Load(rig)
    load.until_read(lambda code: code in run.raised)
    load.check(run.events, run.gaps)


@sources()
def test_flood_is_complete(rig: Rig, run: SourceRun) -> None:
    def others(codes: list[int]) -> list[int]:
        return sorted(code for code in codes if code != PRIMER)

    expected = others(rig.flood(10_000, run))
    run.until(lambda run: len(others(run.raised)) >= len(expected), "all alarms are taken").stop()
    assert others(run.raised) == expected
    assert run.gaps == []
