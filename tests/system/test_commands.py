"""The commands as a newcomer types them, with right and wrong input: one sentence for each mistake."""

import json
import os
import shutil
import socket
from pathlib import Path

import pytest

from tests.support.commands import alarmcast, edge, is_one_sentence, run


@pytest.mark.timeout(600)
def test_the_demo_works_to_the_end_and_says_so_in_one_line(tmp_path: Path) -> None:
    done = alarmcast("demo", "--check", "--machines", 2, "--port", 0, "--data-dir", tmp_path)
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert set(result) == {"machines", "events", "forecasts", "model_version", "seconds"}
    assert result["machines"] == 2
    assert result["model_version"]
    assert result["events"] > 0
    assert result["forecasts"] >= 2
    again = alarmcast("demo", "--check", "--machines", 2, "--port", 0, "--data-dir", tmp_path)
    assert again.returncode == 0, again.stderr
    assert json.loads(again.stdout)["events"] > 0, "a demo that goes on must not be content with its past"


def test_a_demo_that_cannot_finish_in_time_says_what_is_missing(tmp_path: Path) -> None:
    done = alarmcast(
        "demo", "--check", "--machines", 1, "--port", 0, "--data-dir", tmp_path, "--timeout", 1, "--speed", 1
    )
    assert done.returncode == 2
    assert "no forecast from live events for padova/filler-1" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("command", ["serve", "demo"])
def test_a_port_in_use_is_one_sentence(tmp_path: Path, command: str) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        is_one_sentence(alarmcast(command, "--port", port, "--data-dir", tmp_path), str(port), "--port")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["admin", "enrol", "Padova"], ["write site/machine"]),
        (["admin", "enrol", "padova/x", "--time-zone", "Mars"], ["Mars", "Europe/Rome"]),
        (["admin", "catalogue", "load", "/nowhere.csv"], ["Cannot read", "/nowhere.csv"]),
        (["admin", "answer", "padova/x", "139", "handled"], ["no machine padova/x", "admin enrol"]),
        (["admin", "enrol", "padova/x", "--history", "/nowhere.csv"], ["no file /nowhere.csv"]),
        (["admin", "history", "load", "padova/x", "/dev/null"], ["no machine padova/x", "admin enrol"]),
        (["admin", "watch", "1"], ["No service is running", "alarmcast serve"]),
        (["admin", "model", "rollback", "--reason", "x"], ["no earlier version"]),
    ],
)
def test_a_mistake_in_an_admin_command_is_one_sentence(
    tmp_path: Path, arguments: list[str], words: list[str]
) -> None:
    is_one_sentence(alarmcast(*arguments, "--data-dir", tmp_path), *words)


def test_an_unknown_or_wrong_variable_is_one_sentence(tmp_path: Path) -> None:
    is_one_sentence(alarmcast("serve", "--data-dir", tmp_path, ALARMCAST_COLOUR="red"), "ALARMCAST_COLOUR")
    is_one_sentence(alarmcast("serve", "--data-dir", tmp_path, ALARMCAST_BROKER_PORT="x"), "ALARMCAST_BROKER_PORT")
    for url in ("no url", "mysql://x", "sqlite://"):
        is_one_sentence(alarmcast("serve", "--data-dir", tmp_path, ALARMCAST_DATABASE_URL=url), "database URL")
    is_one_sentence(alarmcast("serve", "--data-dir", "/dev/null/x", "--port", 0), "/dev/null/x")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["run"], ["site", "ALARMCAST_EDGE_SITE", "missing"]),
        (["run", "--config", "/nowhere.toml"], ["Cannot read /nowhere.toml"]),
        (
            ["run", "--site", "a", "--machine", "b", "--source-kind", "replay", "--source-path", "/nowhere.csv"],
            ["no file /nowhere.csv"],
        ),
        (
            ["run", "--site", "a", "--machine", "b", "--source-kind", "tail", "--source-path", "/"],
            ["/ is a folder"],
        ),
        (["simulate", "--out", "/nowhere/x.csv"], ["Cannot write /nowhere/x.csv"]),
        (
            [
                "run",
                "--site",
                "a",
                "--machine",
                "b",
                "--source-kind",
                "simulated",
                "--spool-path",
                "/proc/x/spool",
            ],
            ["/proc/x/spool", "--spool-path"],
        ),
    ],
)
def test_a_mistake_in_the_agents_configuration_is_one_sentence(arguments: list[str], words: list[str]) -> None:
    is_one_sentence(edge(*arguments), *words)


def test_simulate_writes_the_raw_layout(tmp_path: Path) -> None:
    log = tmp_path / "alarms.csv"
    done = edge("simulate", "--days", 3, "--machines", 2, "--out", log)
    assert done.returncode == 0, done.stderr
    header, *rows = log.read_text().splitlines()
    assert header == "timestamp,alarm,serial"
    assert {row.split(",")[2] for row in rows} <= {"0", "1"}
    assert f"{len(rows)} alarms of 2 machines" in done.stdout


def bare_path(tmp_path: Path, *programs: str) -> str:
    """Return a PATH that holds just these programs."""
    for program in programs:
        found = shutil.which(program)
        assert found
        (tmp_path / program).symlink_to(found)
    return str(tmp_path)


SHELL = ("sh", "dirname", "cat", "grep", "tail", "mktemp", "rm")


def test_without_python_the_demo_says_so_in_one_sentence(tmp_path: Path) -> None:
    done = run("scripts/demo", "--check", PATH=bare_path(tmp_path, *SHELL), PYTHON="")
    is_one_sentence(done, "Python 3.11 or newer was not found")


def test_without_a_network_the_demo_says_so_without_a_traceback(tmp_path: Path) -> None:
    environment = {
        name: "" for name in os.environ if name.startswith("PIP_")
    } | {
        "VENV": str(tmp_path / "venv"),
        "PIP_CONFIG_FILE": os.devnull,
        "PIP_INDEX_URL": "http://127.0.0.1:9/simple",
        "PIP_RETRIES": "0",
    }  # fmt: skip
    done = run("scripts/demo", "--check", **environment)
    assert done.returncode == 1
    assert "Is the network there" in done.stderr.strip().splitlines()[-1]
    assert "Traceback" not in done.stderr
