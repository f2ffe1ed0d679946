"""Alerts that Prometheus takes, that fire when they must, and that somebody can act on."""

import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml
from typer.main import get_command

from service.cli import app
from service.settings import PREFIX, Settings
from tests.conftest import Mosquitto, free_port, require, wait_until
from tests.deploy.monitoring import PROMETHEUS, RUNBOOK, Rule, exposed, metrics_in, promtool, rules
from tests.system.conftest import Plant
from wire.enums import Role

TESTS = PROMETHEUS / "tests/alerts.test.yml"


def headings() -> list[str]:
    return re.findall(r"^## (.+)$", RUNBOOK.read_text(encoding="utf-8"), flags=re.MULTILINE)


def _commands(group: Any, before: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    for name in group.list_commands(None) if hasattr(group, "list_commands") else ():
        yield (*before, name)
        yield from _commands(group.get_command(None, name), (*before, name))


def test_prometheus_takes_the_alerts_and_the_example(tmp_path: Path) -> None:
    folder = shutil.copytree(PROMETHEUS, tmp_path / "prometheus")
    (folder / "alarmcast.key").write_text("a key", encoding="utf-8")
    checked = promtool("check", "config", "--lint-fatal", folder / "prometheus.yml")
    assert checked.returncode == 0, checked.stdout + checked.stderr
    assert f"{len(rules())} rules found" in checked.stdout


def test_every_alert_fires_when_it_must_and_not_before() -> None:
    done = promtool("test", "rules", TESTS.name, cwd=TESTS.parent)
    assert done.returncode == 0, done.stdout + done.stderr


def test_no_alert_is_without_a_moment_at_which_it_fires_and_one_at_which_it_is_quiet() -> None:
    fired: set[str] = set()
    quiet: set[str] = set()
    for test in yaml.safe_load(TESTS.read_text(encoding="utf-8"))["tests"]:
        for one in test.get("promql_expr_test", []):
            (fired if one["exp_samples"] else quiet).update(re.findall(r'alertname="(\w+)"', one["expr"]))
    assert fired == quiet == {rule.name for rule in rules()}


@pytest.mark.parametrize("rule", rules(), ids=lambda rule: rule.name)
def test_an_alert_says_how_grave_it_is_what_happened_and_where_to_read_on(rule: Rule) -> None:
    assert rule.severity in {"critical", "warning"}
    assert set(rule.annotations) == {"summary", "description", "runbook"}
    assert rule.annotations["summary"].endswith(".")
    assert rule.annotations["description"].endswith(".")
    assert rule.annotations["runbook"] == f"deploy/runbook.md#{rule.name.lower()}"


def test_the_runbook_has_a_heading_for_every_alert_and_no_other() -> None:
    assert headings() == sorted(set(headings()), key=headings().index)
    assert set(headings()) == {rule.name for rule in rules()}


def test_every_heading_says_what_it_means_how_to_confirm_and_what_to_do() -> None:
    sections = re.split(r"^## .+$", RUNBOOK.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]
    for name, section in zip(headings(), sections, strict=True):
        assert re.findall(r"^- \*\*(\w+):\*\*", section, flags=re.MULTILINE) == ["Means", "Confirm", "Do"], name


def test_who_asks_as_the_runbook_says_has_a_key_and_so_learns_what_is_wrong() -> None:
    asked = re.findall(r"`curl ([^`]+)`", RUNBOOK.read_text(encoding="utf-8"))
    assert [one for one in asked if "/readyz" in one]
    assert not [one for one in asked if "/livez" not in one and "Authorization: Bearer" not in one]


def test_the_runbook_names_only_alerts_settings_and_commands_that_there_are() -> None:
    text = RUNBOOK.read_text(encoding="utf-8")
    assert set(re.findall(r"\bAlarmcast[A-Z]\w+", text)) <= set(headings())
    settings = {f"{PREFIX}{name.upper()}" for name in Settings.model_fields}
    others = {"ALARMCAST_CLOCK", "ALARMCAST_CONFIG"}
    assert set(re.findall(r"\bALARMCAST_[A-Z_]+[A-Z]\b", text)) - others <= settings
    commands = {tuple(found.split()) for found in re.findall(r"alarmcast (admin(?: [a-z-]+){1,2})", text)}
    known = set(_commands(get_command(app)))
    assert len(commands) > 5
    assert commands <= known


def test_alerts_ask_only_for_what_a_running_service_tells(told: str) -> None:
    names = exposed(told)
    for rule in rules():
        assert metrics_in(rule.expression) <= names, rule.name


@pytest.fixture
def prometheus(tmp_path: Path) -> Iterator[tuple[Plant, str]]:
    """A service and a real Prometheus on the example, moved to free ports and made impatient."""
    require(shutil.which("prometheus"), "prometheus")
    folder = shutil.copytree(PROMETHEUS, tmp_path / "prometheus")
    (folder / "alarmcast.key").write_text("a key", encoding="utf-8")
    plant = Plant(tmp_path, Mosquitto(tmp_path))  # a broker that is away
    example = (folder / "prometheus.yml").read_text(encoding="utf-8")
    moved = example.replace("service:8080", f"127.0.0.1:{plant.port}").replace("15s", "1s")
    (folder / "prometheus.yml").write_text(moved, encoding="utf-8")
    address = f"127.0.0.1:{free_port()}"
    flags = [f"--config.file={folder}/prometheus.yml", f"--storage.tsdb.path={tmp_path}/data"]
    log = (tmp_path / "prometheus.log").open("wb")
    with log:
        command = ["prometheus", *flags, f"--web.listen-address={address}"]
        server = subprocess.Popen(command, stdout=log, stderr=log)
    try:
        plant.start_service()
        key = plant.api.keys.add("prometheus", role=Role.VIEWER).key
        (folder / "alarmcast.key").write_text(key, encoding="utf-8")
        yield plant, f"http://{address}"
    finally:
        server.terminate()
        server.wait(timeout=20)
        plant.service.stop()


def test_a_real_prometheus_reads_the_service_and_sees_that_its_broker_is_away(
    prometheus: tuple[Plant, str],
) -> None:
    plant, address = prometheus

    def asked(expression: str) -> list[dict[str, Any]]:
        try:
            answer = httpx.get(f"{address}/api/v1/query", params={"query": expression})
        except httpx.TransportError:
            return []
        return list(answer.json()["data"]["result"]) if answer.status_code == 200 else []

    wait_until(lambda: asked('up{job="alarmcast"} == 1'), "Prometheus has read the service")
    (found,) = asked("alarmcast_build_info")
    assert found["metric"]["instance"] == f"127.0.0.1:{plant.port}"
    wait_until(lambda: asked('ALERTS{alertname="AlarmcastBrokerDisconnected"}'), "the alert is pending")
    assert asked("alarmcast_ingest_lag_seconds_bucket")
