"""Settings: flag over variable over file over default, and one sentence for any mistake."""

from pathlib import Path

import pytest

from edge_agent.errors import ConfigRejected
from edge_agent.settings import load

TOML = """
site = "padova"
machine = "filler-1"
[broker]
host = "broker.plant"
port = 1884
[source]
kind = "simulated"
"""


def config(tmp_path: Path, text: str = TOML) -> Path:
    file = tmp_path / "edge.toml"
    file.write_text(text)
    return file


def test_a_table_prefixes_its_keys(tmp_path: Path) -> None:
    settings = load(config(tmp_path), {}, {})
    assert (settings.broker_host, settings.broker_port) == ("broker.plant", 1884)


def test_a_flag_wins_over_a_variable_and_that_over_the_file(tmp_path: Path) -> None:
    environ = {"ALARMCAST_EDGE_BROKER_PORT": "2000", "ALARMCAST_EDGE_BROKER_HOST": "from.env", "HOME": "/"}
    settings = load(config(tmp_path), {"broker_port": "3000", "site": None}, environ)
    assert (settings.broker_port, settings.broker_host, settings.site) == (3000, "from.env", "padova")


@pytest.mark.parametrize(
    ("flags", "environ", "sentence"),
    [
        ({"site": "Padova"}, {}, "setting site .*--site.*ALARMCAST_EDGE_SITE.* is wrong"),
        ({"broker_port": "0"}, {}, "setting broker_port"),
        ({"source_kind": "tail"}, {}, "needs source_path"),
        ({"source_timezone": "Rome"}, {}, "write one like Europe/Rome"),
        ({"clock_speed": "-1"}, {}, "setting clock_speed"),
        ({"clock_speed": "60"}, {}, "needs clock_wall_origin"),
        ({}, {"ALARMCAST_EDGE_COLOUR": "red"}, "There is no setting colour"),
    ],
)
def test_a_mistake_is_one_sentence(
    tmp_path: Path, flags: dict[str, str | None], environ: dict[str, str], sentence: str
) -> None:
    with pytest.raises(ConfigRejected, match=sentence):
        load(config(tmp_path), flags, environ)


def test_a_missing_setting_is_named_as_it_may_be_given() -> None:
    with pytest.raises(ConfigRejected, match=r"The setting site .* is missing"):
        load(None, {}, {})


def test_an_unknown_key_in_the_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigRejected, match="There is no setting broker_colour"):
        load(config(tmp_path, TOML.replace("host", "colour")), {}, {})


@pytest.mark.parametrize("text", ["site =", "\x00"])
def test_a_file_that_is_not_toml_is_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(ConfigRejected, match="not valid TOML"):
        load(config(tmp_path, text), {}, {})


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigRejected, match="Cannot read"):
        load(tmp_path / "none.toml", {}, {})


def secret(tmp_path: Path) -> Path:
    file = tmp_path / "password"
    file.write_text("hush\n")
    file.chmod(0o600)
    return file


def test_a_secret_may_stand_in_a_file_that_the_environment_names(tmp_path: Path) -> None:
    environ = {"ALARMCAST_EDGE_BROKER_PASSWORD_FILE": str(secret(tmp_path))}
    settings = load(config(tmp_path), {}, environ)
    assert settings.broker_password == "hush"  # noqa: S105
    assert "hush" not in repr(settings)


def test_a_secret_may_stand_in_a_file_that_edge_toml_names(tmp_path: Path) -> None:
    text = TOML.replace("[source]", f'password_file = "{secret(tmp_path)}"\n[source]')
    assert load(config(tmp_path, text), {}, {}).broker_password == "hush"  # noqa: S105
    assert load(config(tmp_path, text), {"broker_password": "other"}, {}).broker_password == "other"  # noqa: S105


def test_a_secret_and_its_file_together_are_refused(tmp_path: Path) -> None:
    file = str(secret(tmp_path))
    environ = {"ALARMCAST_EDGE_BROKER_PASSWORD": "x", "ALARMCAST_EDGE_BROKER_PASSWORD_FILE": file}
    with pytest.raises(
        ConfigRejected, match=r"ALARMCAST_EDGE_BROKER_PASSWORD and .*_PASSWORD_FILE are both given"
    ):
        load(config(tmp_path), {}, environ)


def test_what_is_no_secret_has_no_file(tmp_path: Path) -> None:
    with pytest.raises(ConfigRejected, match="There is no setting site_file"):
        load(config(tmp_path), {}, {"ALARMCAST_EDGE_SITE_FILE": str(secret(tmp_path))})


def test_a_secret_file_that_others_can_read_is_warned_about(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = secret(tmp_path)
    file.chmod(0o644)
    load(config(tmp_path), {}, {"ALARMCAST_EDGE_BROKER_PASSWORD_FILE": str(file)})
    assert "chmod 600" in caplog.text
    assert "hush" not in caplog.text


MODBUS = TOML.replace('"simulated"', '"modbus"') + '[modbus]\nurl = "plc"\n'


def test_table_of_the_source_is_its_options(tmp_path: Path) -> None:
    assert load(config(tmp_path, MODBUS), {}, {}).source_options == {"url": "plc"}
    environ = {"ALARMCAST_EDGE_SOURCE_OPTIONS": '{"url": "other"}'}
    assert load(config(tmp_path, MODBUS), {}, environ).source_options == {"url": "other"}
    with pytest.raises(ConfigRejected, match=r"source_options.*it is not JSON"):
        load(config(tmp_path, MODBUS), {"source_options": "{"}, {})


def test_table_of_another_source_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigRejected, match=r'The table \[modbus\] needs kind = "modbus"'):
        load(config(tmp_path, MODBUS), {"source_kind": "simulated"}, {})
