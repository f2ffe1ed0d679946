"""Modbus: bits and words of a real server become alarms."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from edge_agent.errors import ConfigRejected
from edge_agent.settings import SourceKind
from edge_agent.sources import Context
from edge_agent.sources.modbus import build
from tests.support.plc_servers import ModbusServer
from tests.support.source_run import SourceRun, source_settings
from wire.clock import PlantClock

CODE: dict[str, Any] = {"as": "code", "table": "holding", "address": 0}
BITS: dict[str, Any] = {"as": "bits", "table": "holding", "address": 10, "count": 100, "code": 1000}


@pytest.fixture
def server() -> Iterator[ModbusServer]:
    running = ModbusServer()
    yield running
    running.stop()


def options(server: ModbusServer, *signals: dict[str, Any]) -> dict[str, Any]:
    return {"url": f"modbus://127.0.0.1:{server.port}", "poll_seconds": 0.01, "signals": list(signals)}


@pytest.fixture
def run(tmp_path: Path, server: ModbusServer) -> Iterator[Any]:
    """Start a run with signals; all runs of a test share a spool, one after the other."""
    runs: list[SourceRun] = []

    def start(*signals: dict[str, Any]) -> SourceRun:
        for before in runs:
            before.close()
        runs[:] = [SourceRun(tmp_path, source_settings(SourceKind.MODBUS, options(server, *signals)))]
        return runs[0].until_read()

    yield start
    runs[0].close()


def test_words_bits_and_coils_are_raised_and_cleared(run: Any, server: ModbusServer) -> None:
    coil = {"as": "flag", "table": "coil", "address": 5, "code": 77}
    long = {"as": "code", "table": "input", "address": 2, "type": "uint32"}
    found = run(CODE, BITS, coil, long)
    server.words(0, 139)
    found.until_raised(139)
    server.words(10, 0b100, 1)
    found.until_raised(139, 1002, 1016)
    server.coil(5, value=True)
    found.until_raised(139, 1002, 1016, 77)
    server.words(0, 140)
    found.until_raised(139, 1002, 1016, 77, 140)
    assert found.raised[:1] + sorted(found.raised[1:3]) + found.raised[3:] == [139, 1002, 1016, 77, 140]
    server.words(0, 0)
    found.until(lambda run: run.cleared == [139, 140], "both codes are cleared")


def test_signal_without_a_code_has_its_name(run: Any, server: ModbusServer) -> None:
    found = run({"as": "bits", "table": "holding", "address": 3}, {**CODE, "name": "Infeed"})
    server.words(3, 2)
    server.words(0, 9)
    found.until(lambda run: len(run.spool.codes()) == 2, "two names have numbers")
    assert {code.name for code in found.spool.codes()} == {"holding 3.1", "Infeed.9"}
    assert sorted(found.raised) == sorted(code.code for code in found.spool.codes())


def test_restart_of_the_agent_does_not_raise_active_alarms_again_and_is_a_gap(
    run: Any, server: ModbusServer
) -> None:
    server.words(0, 139)
    run(CODE).until_raised(139)
    server.words(10, 1)
    second = run(CODE, BITS).until_raised(139, 1000)
    assert second.raised == [139, 1000]
    assert len(second.gaps) == 1
    assert "the agent was stopped" in second.warning


def test_missing_address_and_wrong_value_are_counted_once_and_do_not_stop_the_rest(
    run: Any, server: ModbusServer
) -> None:
    missing = {"as": "bits", "table": "input", "address": 500}
    long = {"as": "code", "table": "holding", "address": 110, "type": "uint32", "name": None}
    found = run(missing, long, CODE)
    server.words(0, 139)
    found.until_raised(139)
    assert found.spool.skipped == 1
    assert "input 500: the device has no such address" in found.last_skipped
    server.words(110, 0xFFFF, 0xFFFF)
    found.until(lambda run: run.spool.skipped == 2, "the wrong value is counted")
    server.words(110, 0, 7)
    found.until_raised(139, 7)
    assert found.spool.skipped == 2
    assert len(found.gaps) == 1  # the time in which one signal could not be read


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"signals": [{**CODE, "as": "word"}]}, r"modbus\.signals\.0\.as is wrong"),
        ({"signals": []}, r"modbus\.signals is wrong"),
        ({"signals": [CODE], "speed": 1}, r"There is no setting modbus\.speed"),
        ({"signals": [CODE], "url": "plc:a"}, "is not an address like modbus://"),
    ],
)
def test_mistake_in_the_table_is_one_sentence(wrong: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ConfigRejected, match=sentence):
        build({"url": "plc"} | wrong, Context(PlantClock()))


def test_doctor_checks_connection_and_each_signal(server: ModbusServer) -> None:
    server.words(0, 139)
    missing = {"as": "bits", "table": "input", "address": 500}
    source = build(options(server, CODE, missing), Context(PlantClock()))
    found = {finding.check: finding for finding in source.check()}
    assert (found["source"].ok, found["holding 0"].ok, found["input 500"].ok) == (True, True, False)
    assert "139" in found["holding 0"].message
    server.stop()
    try:
        (finding,) = source.check()
        assert (finding.ok, "check address, port and network" in finding.message) == (False, True)
    finally:
        server.start()
