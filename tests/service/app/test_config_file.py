"""A file of settings: below flags and environment, above defaults, and each mistake is one sentence."""

from pathlib import Path

import pytest

from service.app.configuration import configuration
from service.errors import InputRejected


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (tmp_path / "password").write_text("from the file\n")
    (tmp_path / "password").chmod(0o600)
    path = tmp_path / "alarmcast.env"
    path.write_text(
        "# a comment\n\n"
        "ALARMCAST_BROKER_PORT=8883\n"
        "ALARMCAST_BROKER_TLS=true\n"
        'ALARMCAST_BROKER_HOST="broker.example"\n'
        f"ALARMCAST_BROKER_PASSWORD_FILE={tmp_path / 'password'}\n"
    )
    return path


@pytest.mark.parametrize("by", ["flag", "variable"])
def test_what_a_file_gives_is_below_flags_and_environment_and_above_defaults(
    file: Path, monkeypatch: pytest.MonkeyPatch, by: str
) -> None:
    if by == "variable":
        monkeypatch.setenv("ALARMCAST_CONFIG", str(file))
    monkeypatch.setenv("ALARMCAST_BROKER_HOST", "other.example")
    found = configuration(config=file if by == "flag" else None, broker_port=1884)
    told = found.settings
    assert (told.broker_host, told.broker_port, told.broker_tls) == ("other.example", 1884, True)
    assert (told.broker_password, told.port) == ("from the file", 8080)
    assert found.origins["broker_tls"] == f"file, {file}"
    assert found.origins["broker_host"] == "environment, ALARMCAST_BROKER_HOST"


def test_a_secret_of_the_environment_replaces_the_one_that_the_file_names(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ALARMCAST_BROKER_PASSWORD", "from the environment")
    assert configuration(config=file).settings.broker_password == "from the environment"  # noqa: S105


def test_without_a_file_nothing_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ALARMCAST_CONFIG", "")
    assert configuration().settings.broker_port == 1883


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("ALARMCAST_BROKER_PROT=1", "no setting ALARMCAST_BROKER_PROT; correct line 1"),
        ("ALARMCAST_CONFIG=other.env", "no setting ALARMCAST_CONFIG"),
        ("BROKER_PORT=1", "Line 1 of .* is not a setting"),
        ("ALARMCAST_BROKER_PORT", "Line 1 of .* is not a setting"),
        ("ALARMCAST_BROKER_PORT=many", "The setting broker_port .* is wrong"),
    ],
)
def test_a_mistake_in_the_file_is_one_sentence(tmp_path: Path, line: str, sentence: str) -> None:
    wrong = tmp_path / "wrong.env"
    wrong.write_text(f"{line}\n")
    with pytest.raises(InputRejected, match=sentence):
        configuration(config=wrong)
    with pytest.raises(InputRejected, match="Cannot read the settings in"):
        configuration(config=tmp_path / "none.env")
