"""Settings that are more than a number."""

from datetime import time
from pathlib import Path

import pytest

from service.app.configuration import client_key, configuration, load_settings
from service.errors import InputRejected
from service.settings import secret_names


def test_there_are_three_shifts_unless_told_otherwise() -> None:
    assert load_settings().shift_starts == {"early": time(6), "late": time(14), "night": time(22)}


def test_shifts_can_be_set_in_any_order() -> None:
    two = load_settings(shifts="night=18:30, day=06:30")
    assert list(two.shift_starts.items()) == [("day", time(6, 30)), ("night", time(18, 30))]
    assert load_settings(shifts="all=00:00").shift_starts == {"all": time(0)}


@pytest.mark.parametrize(
    "shifts",
    [
        "",
        "early",
        "early=6:00",
        "early=24:00",
        "early=06:60",
        "Early=06:00",
        "a=06:00,,b=07:00",
        "a=06:00;b=07:00",
        "a=06:00,a=07:00",
        "a=06:00,b=06:00",
        "a\n=06:00",
    ],
)
def test_shifts_that_cannot_be_are_refused_with_a_sentence(shifts: str) -> None:
    with pytest.raises(InputRejected, match=r"The setting shifts \(ALARMCAST_SHIFTS\) is wrong: .*\."):
        load_settings(shifts=shifts)


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    file = tmp_path / "secret"
    file.write_text("hush\n")
    file.chmod(0o600)
    return file


def test_a_secret_may_stand_in_a_file(monkeypatch: pytest.MonkeyPatch, secret: Path) -> None:
    monkeypatch.setenv("ALARMCAST_BROKER_PASSWORD_FILE", str(secret))
    found = configuration()
    assert found.settings.broker_password == "hush"  # noqa: S105
    assert found.origins == {"broker_password": f"file, {secret}"}
    assert "hush" not in repr(found)


def test_every_secret_may(monkeypatch: pytest.MonkeyPatch, secret: Path) -> None:
    for name in secret_names():
        monkeypatch.setenv(f"ALARMCAST_{name.upper()}_FILE", str(secret))
    settings = load_settings()
    assert {getattr(settings, name) for name in secret_names()} == {"hush"}


def test_a_secret_and_its_file_together_are_refused(monkeypatch: pytest.MonkeyPatch, secret: Path) -> None:
    monkeypatch.setenv("ALARMCAST_BROKER_PASSWORD", "x")
    monkeypatch.setenv("ALARMCAST_BROKER_PASSWORD_FILE", str(secret))
    with pytest.raises(
        InputRejected, match="ALARMCAST_BROKER_PASSWORD and ALARMCAST_BROKER_PASSWORD_FILE are both"
    ):
        load_settings()


@pytest.mark.parametrize("variable", ["ALARMCAST_COLOUR", "ALARMCAST_PORT_FILE", "ALARMCAST_COLOUR_FILE"])
def test_a_variable_that_names_no_setting_is_refused(
    monkeypatch: pytest.MonkeyPatch, variable: str, secret: Path
) -> None:
    monkeypatch.setenv(variable, str(secret))
    with pytest.raises(InputRejected, match=f"There is no setting {variable}"):
        load_settings()


def test_what_the_agent_is_told_is_none_of_the_services(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ALARMCAST_EDGE_SITE", "padova")
    assert configuration().origins == {}


def test_where_a_setting_came_from_is_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ALARMCAST_PORT", "9000")
    monkeypatch.setenv("ALARMCAST_HOST", "::1")
    found = configuration(port=9001, host=None)
    assert (found.settings.port, found.settings.host) == (9001, "::1")
    assert found.origins == {"port": "flag", "host": "environment, ALARMCAST_HOST"}


def test_a_wrong_secret_is_not_repeated_in_the_sentence_that_refuses_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ALARMCAST_PORT", "sesame-9000")
    with pytest.raises(InputRejected) as refused:
        load_settings()
    assert "sesame" not in str(refused.value)


def test_a_key_for_a_service_elsewhere_is_read_from_the_environment_or_a_file(secret: Path) -> None:
    assert client_key({}) is None
    assert client_key({"ALARMCAST_KEY": "ac_1"}) == "ac_1"
    assert client_key({"ALARMCAST_KEY_FILE": str(secret)}) == "hush"
    with pytest.raises(InputRejected, match="both given"):
        client_key({"ALARMCAST_KEY": "ac_1", "ALARMCAST_KEY_FILE": str(secret)})
