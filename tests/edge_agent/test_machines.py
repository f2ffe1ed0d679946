"""Several machines in one process: each has its own spool, and one that fails does not stop another."""

import re
import signal
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

from edge_agent.errors import ConfigRejected
from edge_agent.settings import load, load_all, spool_path
from edge_agent.status import inspect_spool
from tests.conftest import free_port, wait_until
from tests.system.conftest import clean_environment

TOML = """
site = "padova"
[broker]
port = {port}
[source]
kind = "tail"

[[machines]]
machine = "filler-1"
source.kind = "tail"
source.path = "{folder}/1.csv"
spool.path = "{folder}/1.spool"

[[machines]]
machine = "filler-2"
spool.path = "{folder}/2.spool"
[machines.source]
path = "{folder}/2.csv"
[machines.broker]
username = "second"

[[machines]]
machine = "broken"
spool.path = "{folder}/3.spool"
source.path = "{folder}"

[[machines]]
machine = "unreachable"
spool.path = "{folder}/4.spool"
source.kind = "modbus"
[machines.modbus]
url = "127.0.0.1:{port}"
signals = [{{ as = "code", table = "holding", address = 0 }}]
"""


@pytest.fixture
def config(tmp_path: Path) -> Path:
    file = tmp_path / "edge.toml"
    file.write_text(TOML.format(folder=tmp_path, port=free_port()))
    return file


def test_machines_share_settings_and_have_their_own(config: Path, tmp_path: Path) -> None:
    machines = load_all(config, {}, {})
    assert [(one.site, one.machine) for one in machines] == [
        ("padova", "filler-1"),
        ("padova", "filler-2"),
        ("padova", "broken"),
        ("padova", "unreachable"),
    ]
    assert [one.broker_username for one in machines] == [None, "second", None, None]
    assert load(config, {"machine": "filler-2"}, {}).source_path == tmp_path / "2.csv"
    assert spool_path(config, {"machine": "filler-2"}, {}) == tmp_path / "2.spool"
    with pytest.raises(
        ConfigRejected, match="filler-1, filler-2, broken, unreachable; name one of them with --machine"
    ):
        load(config, {}, {})


def test_two_machines_with_one_spool_are_refused(config: Path) -> None:
    config.write_text(config.read_text().replace("2.spool", "1.spool"))
    with pytest.raises(ConfigRejected, match=r"same spool\.path"):
        load_all(config, {}, {})


def test_machine_that_fails_does_not_stop_the_others_and_every_line_names_its_machine(
    config: Path, tmp_path: Path
) -> None:
    command = [sys.executable, "-m", "edge_agent", "run", "--config", str(config), "--stop-drain-seconds", "0"]
    with (tmp_path / "log").open("wb") as log:
        agent = subprocess.Popen(command, stderr=log, env=clean_environment())
    try:
        for number, count in ((1, 2), (2, 3)):
            rows = [f"2026-11-16 08:00:0{row},{row},1\n" for row in range(count)]
            (tmp_path / f"{number}.csv").write_text("".join(rows))
        for number, count in ((1, 2), (2, 3)):
            wait_until(partial(has_stored, tmp_path / f"{number}.spool", count), "each spool has its events")
        wait_until(
            lambda: "padova/unreachable: Cannot read modbus" in (tmp_path / "log").read_text(), "it is logged"
        )
        agent.send_signal(signal.SIGTERM)
        assert agent.wait(30) == 0
    finally:
        agent.kill()
    lines = (tmp_path / "log").read_text().splitlines()
    named = [re.match(r"\S+ \S+ [A-Z]+ padova/([\w-]+): (.*)", line) for line in lines]
    assert all(named), lines
    without_broker = {line[1] for line in named if line and "cannot reach the broker" in line[2]}
    assert without_broker >= {"filler-1", "filler-2", "unreachable"}
    assert "broken" in {line[1] for line in named if line}


def has_stored(spool: Path, count: int) -> bool:
    view = inspect_spool(spool)
    return view is not None and view.events == count
