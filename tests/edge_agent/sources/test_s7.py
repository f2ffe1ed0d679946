"""S7: bits and words of a real server's data block become alarms."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from edge_agent.settings import SourceKind
from edge_agent.sources import Context
from edge_agent.sources.s7 import build, place
from tests.support.plc_servers import S7Server
from tests.support.source_run import SourceRun, source_settings
from wire.clock import PlantClock

CODE: dict[str, Any] = {"as": "code", "address": "DB10.DBW20"}
BITS: dict[str, Any] = {"as": "bits", "address": "DB10.DBB0", "count": 16, "code": 1000}


@pytest.fixture
def server() -> Iterator[S7Server]:
    running = S7Server()
    yield running
    running.stop()


def options(server: S7Server, *signals: dict[str, Any]) -> dict[str, Any]:
    return {"url": f"127.0.0.1:{server.port}", "poll_seconds": 0.01, "signals": list(signals)}


@pytest.fixture
def run(tmp_path: Path, server: S7Server) -> Iterator[Any]:
    runs: list[SourceRun] = []

    def start(*signals: dict[str, Any]) -> SourceRun:
        for before in runs:
            before.close()
        runs[:] = [SourceRun(tmp_path, source_settings(SourceKind.S7, options(server, *signals)))]
        return runs[0].until_read()

    yield start
    runs[0].close()


def test_bits_words_and_flags_are_raised_and_cleared(run: Any, server: S7Server) -> None:
    found = run(
        CODE, BITS, {"as": "flag", "address": "DB10.DBX30.3", "code": 77}, {"as": "flag", "address": "M4.1"}
    )
    server.block[20:22] = (139).to_bytes(2, "big")
    found.until_raised(139)
    server.block[1] = 0b100
    found.until_raised(139, 1010)
    server.block[30] = 0b1000
    found.until_raised(139, 1010, 77)
    server.flags[4] = 0b10
    found.until(lambda run: [code.name for code in run.spool.codes()] == ["M4.1"], "the flag has a number")
    assert found.raised == [139, 1010, 77, found.spool.codes()[0].code]
    server.block[1] = 0
    found.until(lambda run: run.cleared == [1010], "the bit is cleared")


def test_bits_of_a_word_are_counted_as_the_hmi_counts_them(run: Any, server: S7Server) -> None:
    found = run({"as": "bits", "address": "DB10.DBW0", "count": 2, "code": 1})
    server.block[1] = 1  # DBX1.0 is bit 0 of the first word
    found.until_raised(1)
    server.block[2] = 1  # DBX2.0 is bit 8 of the second word
    found.until_raised(1, 25)
    assert found.raised == [1, 25]


def test_block_that_is_missing_or_too_small_does_not_stop_the_rest(run: Any, server: S7Server) -> None:
    found = run({"as": "bits", "address": "DB99.DBB0"}, {"as": "bits", "address": "DB10.DBB100"}, CODE)
    server.block[20:22] = (139).to_bytes(2, "big")
    found.until_raised(139)
    assert (found.spool.skipped, found.gaps) == (2, [])


def test_value_that_is_no_code_is_counted(run: Any, server: S7Server) -> None:
    found = run({"as": "code", "address": "DB10.DBD4"})
    server.block[4:8] = b"\xff" * 4
    found.until(lambda run: run.spool.skipped == 1, "the wrong value is counted")
    assert "is not an alarm code" in found.last_skipped


@pytest.mark.parametrize("address", ["DB10", "DB10.DBX0", "DB10.DBW0.1", "M10", "MW4.1", "X1.0", "DB10.DBX0.8"])
def test_wrong_address_is_rejected(address: str) -> None:
    with pytest.raises(ValueError, match=address):
        place(address)


def test_doctor_names_the_address_that_cannot_be_read(server: S7Server) -> None:
    source = build(options(server, CODE, {"as": "bits", "address": "DB99.DBB0"}), Context(PlantClock()))
    assert [(finding.check, finding.ok) for finding in source.check()] == [
        ("source", True),
        ("DB10.DBW20", True),
        ("DB99.DBB0", False),
    ]
