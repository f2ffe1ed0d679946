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
