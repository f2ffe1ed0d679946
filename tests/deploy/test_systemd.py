"""The units: systemd accepts them, finds little exposed, and our programs never do what they forbid."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from signal import SIGTERM

import httpx
import pytest

from edge_agent import settings as edge_settings
from service.settings import PREFIX, Settings
from tests.conftest import free_port, require, wait_until
from tests.deploy.conftest import REPOSITORY, DeployedBroker
from tests.deploy.sandbox import hand_over, is_possible, without_privileges
from tests.deploy.units import SPECIFIERS, Unit, read
from tests.deploy.variables import unknown_variables

FOLDER = REPOSITORY / "deploy/systemd"
SERVICE, PROCESS = FOLDER / "alarmcast.service", FOLDER / "alarmcast@.service"
AGENT = FOLDER / "alarmcast-edge@.service"
UNITS = [SERVICE, PROCESS, AGENT]
INSTALLED = "/opt/alarmcast/bin"
PROGRAMS = Path(sys.executable).parent
SUGGESTED = re.compile(r"^# (?=ALARMCAST_\w+=)", re.MULTILINE)
MOST_EXPOSED = 1.5  # of 10; reading the host's files and speaking over the network are what is left
CALL = re.compile(r"^\d+\s+(\w+)\(", re.MULTILINE)  # process, call


def moved(unit: Path, folder: Path) -> Path:
    """Copy a unit, with its program where ours is."""
    copy = folder / unit.name
    copy.write_text(unit.read_text(encoding="utf-8").replace(INSTALLED, str(PROGRAMS)), encoding="utf-8")
    return copy


def analyze(*words: str | Path) -> subprocess.CompletedProcess[str]:
    require(shutil.which("systemd-analyze"), "systemd-analyze")
    return subprocess.run(["systemd-analyze", *words], capture_output=True, text=True, check=False)


@pytest.mark.parametrize("path", UNITS, ids=lambda path: path.stem)
def test_systemd_finds_no_mistake_in_a_unit(path: Path, tmp_path: Path) -> None:
    checked = analyze("verify", "--man=no", moved(path, tmp_path))
    assert (checked.returncode, checked.stdout + checked.stderr) == (0, "")


@pytest.mark.parametrize("path", UNITS, ids=lambda path: path.stem)
def test_systemd_finds_little_exposed(path: Path, tmp_path: Path) -> None:
    limit = f"--threshold={round(MOST_EXPOSED * 10)}"
    checked = analyze("security", "--offline=yes", "--no-pager", limit, moved(path, tmp_path))
    assert checked.returncode == 0, checked.stdout
    [found] = re.findall(r"Overall exposure level for .*: (\d+\.\d)", checked.stdout)
    assert float(found) <= MOST_EXPOSED


def test_an_admins_command_as_it_is_shown_works_on_the_services_folder(tmp_path: Path) -> None:
    shown = re.findall(rf"^#   sudo -u alarmcast {INSTALLED}/(.*)$", SERVICE.read_text("utf-8"), re.MULTILINE)
    assert shown
    home = read(SERVICE).words("StateDirectory")[0]
    for command in shown:
        assert f"--data-dir /var/lib/{home}" in command
        program, *words = command.replace("/var/lib", str(tmp_path)).split()
        done = subprocess.run(
            [PROGRAMS / program, *words], cwd=tmp_path, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        assert [folder.name for folder in tmp_path.iterdir()] == [home]


@pytest.mark.parametrize("path", UNITS, ids=lambda path: path.stem)
def test_the_program_knows_the_command_it_is_started_with(path: Path) -> None:
    program, *words = read(path).words("ExecStart")
    commands = [word for word in words if re.fullmatch(r"[a-z]+", word)]
    usage = subprocess.run(
        [program.replace(INSTALLED, str(PROGRAMS)), *commands, "--help"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert usage.returncode == 0, usage.stderr
    assert all(option in usage.stdout for option in words if option.startswith("--"))


@pytest.mark.parametrize("path", UNITS, ids=lambda path: path.stem)
def test_every_variable_is_a_setting_and_points_into_the_unit_s_own_folder(path: Path) -> None:
    unit = read(path)
    assert unknown_variables(unit.environment, agent=path == AGENT) == []
    paths = [value for name, value in unit.environment.items() if value.startswith("/") and name[-5:] != "_FILE"]
    assert paths
    assert all(value == unit.state or value.startswith(f"{unit.state}/") for value in paths)
    assert unit.words("WorkingDirectory") == [unit.state]


@pytest.mark.parametrize("path", UNITS, ids=lambda path: path.stem)
def test_nothing_is_promised_to_systemd_that_no_program_of_ours_keeps(path: Path) -> None:
    unit = read(path)
    assert unit.one("Type") == "exec"
    assert "WatchdogSec" not in unit.values


def test_the_example_of_settings_is_understood_line_by_line() -> None:
    text = (FOLDER / "alarmcast.env").read_text(encoding="utf-8")
    lines = [line for line in SUGGESTED.sub("", text).splitlines() if line.startswith(PREFIX)]
    assert len(lines) > len(SUGGESTED.findall(text)) > 0
    given = dict(line.split("=", 1) for line in lines)
    assert unknown_variables(given, agent=False) == []
    fields = {name.removeprefix(PREFIX).lower(): value for name, value in given.items()}
    Settings.model_validate(fields)


def test_an_agent_reads_what_enrolment_gave_from_a_file_that_only_root_can_read() -> None:
    unit = read(AGENT)
    name, _, source = unit.words("LoadCredential")[0].partition(":")
    assert source == f"/etc/alarmcast/edge/{SPECIFIERS['%i']}.toml"
    words = unit.words("ExecStart")
    assert words[words.index("--config") + 1] == f"{SPECIFIERS['%d']}/{name}"


def test_the_service_reads_its_secret_from_a_file_that_only_root_can_read() -> None:
    unit = read(SERVICE)
    name, _, source = unit.words("LoadCredential")[0].partition(":")
    assert source.startswith("/etc/alarmcast/")
    assert unit.environment["ALARMCAST_BROKER_PASSWORD_FILE"] == f"{SPECIFIERS['%d']}/{name}"
    assert not [name for name in unit.environment if name.endswith("PASSWORD")]


def test_one_of_several_processes_is_confined_as_the_only_one_is_and_has_its_own_name_folder_and_file() -> None:
    alone, one = read(SERVICE), read(PROCESS)
    different = {key for key in {*alone.values, *one.values} if alone.values.get(key) != one.values.get(key)}
    assert different == {"Description", "StateDirectory", "WorkingDirectory", "Environment", "EnvironmentFile"}
    assert one.state == f"{alone.state}/{SPECIFIERS['%i']}"
    assert one.words("EnvironmentFile")[-1] == f"/etc/alarmcast/{SPECIFIERS['%i']}.env", (
        "and without it none starts"
    )


def test_every_user_of_a_unit_is_made_and_has_the_unit_s_folder(tmp_path: Path) -> None:
    require(shutil.which("systemd-sysusers"), "systemd-sysusers")
    (tmp_path / "etc").mkdir()
    subprocess.run(
        ["systemd-sysusers", f"--root={tmp_path}", FOLDER / "sysusers.conf"], check=True, capture_output=True
    )
    users = [line.split(":") for line in (tmp_path / "etc/passwd").read_text(encoding="utf-8").splitlines()]
    made = {name: (home, shell) for name, _, _, _, _, home, shell in users}
    assert set(made) == {read(path).one("User") for path in UNITS}
    for path in UNITS:
        home, shell = made[read(path).one("User")]
        assert read(path).state.startswith(home)
        assert shell.endswith("nologin")


def allowed_calls(unit: Unit) -> set[str]:
    """Return the system calls that a unit's filters leave, with systemd's own groups."""
    allowed: set[str] = set()
    for line in unit.values["SystemCallFilter"]:
        calls = {call for group in line.removeprefix("~").split() for call in _members(group)}
        allowed = allowed - calls if line.startswith("~") else allowed | calls
    return allowed


def _members(group: str) -> set[str]:
    if not group.startswith("@"):
        return {group}
    listed = [line.strip() for line in analyze("syscall-filter", group).stdout.splitlines()[1:]]
    names = [line for line in listed if line and not line.startswith("#")]
    return {call for name in names for call in _members(name)}


def calls_of(
    command: list[str], environment: dict[str, str], folder: Path, works: Callable[[str], bool]
) -> set[str]:
    """Run a program as nobody until it works; return what it has asked of the kernel when it ends."""
    require(shutil.which("strace"), "strace")
    trace, said = folder / "trace", folder / "said"
    require(is_possible(), "a Python that other users may run")
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(PREFIX)}
    with said.open("wb") as out:
        # Stopped at calls only and not at signals, so that it costs seconds and not minutes.
        traced = ["strace", "--follow-forks", "--quiet=all", "--signal=none", "-o", str(trace)]
        traced += [*without_privileges(), *command]
        process = subprocess.Popen(traced, env=inherited | environment, cwd=folder, stdout=out, stderr=out)
        try:
            wait_until(lambda: works(said.read_text(encoding="utf-8")), "it works", 120)
        finally:
            children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text(encoding="utf-8").split()
            os.kill(int(children[0]), SIGTERM)
            code = process.wait(timeout=60)
    assert code == 0, said.read_text(encoding="utf-8")
    _, started, own = trace.read_text(encoding="utf-8", errors="replace").partition(f'execve("{command[0]}"')
    assert started
    return set(CALL.findall(own))


def test_an_agent_makes_no_call_that_its_unit_forbids(broker: DeployedBroker, tmp_path: Path) -> None:
    folder = hand_over(tmp_path / "agent")
    environment = {
        "ALARMCAST_EDGE_SITE": "padova",
        "ALARMCAST_EDGE_MACHINE": "filler-1",
        "ALARMCAST_EDGE_SOURCE_KIND": "simulated",
        "ALARMCAST_EDGE_BROKER_PORT": str(broker.port),
        "ALARMCAST_EDGE_SPOOL_PATH": str(folder / "spool.sqlite3"),
        "ALARMCAST_EDGE_STOP_DRAIN_SECONDS": "0",
    }
    made = calls_of([f"{PROGRAMS}/alarmcast-edge", "run"], environment, folder, lambda said: "connected" in said)
    assert "connect" in made
    assert made - allowed_calls(read(AGENT)) == set()


@pytest.mark.timeout(300)
def test_the_service_makes_no_call_that_its_unit_forbids(broker: DeployedBroker, tmp_path: Path) -> None:
    folder = hand_over(tmp_path / "service")
    environment = {
        "ALARMCAST_DATA_DIR": str(folder / "data"),
        "ALARMCAST_PORT": str(port := free_port()),
        "ALARMCAST_BROKER_PORT": str(broker.port),
    }

    def lives(_said: str) -> bool:
        try:
            return httpx.get(f"http://127.0.0.1:{port}/livez").is_success
        except httpx.TransportError:
            return False

    made = calls_of([f"{PROGRAMS}/alarmcast", "serve"], environment, folder, lives)
    assert {"connect", "listen"} <= made
    assert made - allowed_calls(read(SERVICE)) == set()


def test_the_service_s_unit_lets_learning_step_back_behind_forecasts() -> None:
    # Seen when a machine is learned; refused, the training process would end at once.
    assert {"setpriority", "sched_setscheduler", "sched_setaffinity", "mbind"} <= allowed_calls(read(SERVICE))


def test_the_agent_s_settings_are_the_unit_s_where_both_speak() -> None:
    loaded = edge_settings.load(REPOSITORY / "deploy/edge.toml", {}, read(AGENT).environment)
    assert str(loaded.spool_path).startswith(read(AGENT).state)
