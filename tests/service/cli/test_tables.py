"""What commands list, at 80 columns and with the longest ids there are: nothing is cut short or broken in two."""

from datetime import UTC, datetime
from pathlib import Path

import pytest
from typer.testing import CliRunner

from alarmcast import Client, InProcess
from edge_agent.spool import Spool
from edge_agent.status import AgentStatus, StatusFile
from edge_agent.status_cli import print_status as show_status
from service.app.configuration import load_settings
from service.app.service import Service
from service.app.stores import open_stores
from service.cli.admin import app
from service.cli.tables import show
from tests.service.conftest import NOW, small_model

WIDTH = 80
SITE, MACHINE = "padova-" + "s" * 56, "filler-" + "m" * 56
LONG = f"{SITE}/{MACHINE}"
SHORT = "padova/filler-1"
USER, KEY, URL = "maria." + "u" * 40, "andon-" + "k" * 50, "https://example.test/" + "w" * 60


@pytest.fixture(scope="module")
def data_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with one of everything that commands list."""
    folder = tmp_path_factory.mktemp("tables")
    settings = load_settings(data_dir=folder)
    with open_stores(settings) as stores:
        stores.versions.add_and_promote(small_model(), report={}, at=NOW)
        service = Service(settings, stores)
        with Client("http://here", key=service.key, transport=InProcess(service.app)) as client:
            client.enrolment.enrol(LONG, name="Filler with a name of many words", time_zone="America/Indiana/Knox")
            client.enrolment.enrol(SHORT, time_zone="Europe/Rome")
            client.users.add(USER)
            client.keys.add(KEY)
            client.webhooks.add(URL, site=SITE)
    return folder


def printed(data_dir: Path, *command: str) -> str:
    done = CliRunner(env={"COLUMNS": str(WIDTH)}).invoke(app, [*command, "--data-dir", str(data_dir)])
    assert done.exit_code == 0, done.output
    return done.stdout


@pytest.mark.parametrize(
    ("command", "words"),
    [
        (("machine", "list"), [LONG, SHORT, "America/Indiana/Knox", "registered", "Europe/Rome"]),
        (("jobs",), [LONG, SHORT, "collecting"]),
        (("model", "list"), ["v1", "champion"]),
        (("user", "list"), [USER, "viewer"]),
        (("key", "list"), [KEY, "viewer", "never"]),
        (("webhook", "list"), [URL, SITE]),
    ],
)
def test_a_list_at_80_columns_breaks_no_word_and_no_line_needlessly(
    data_dir: Path, command: tuple[str, ...], words: list[str]
) -> None:
    text = printed(data_dir, *command)
    for word in words:
        assert word in text
    for line in text.splitlines():
        assert len(line) <= WIDTH or max(map(len, line.split())) > WIDTH - 20, line
    assert "…" not in text


def test_rows_that_fit_stand_in_a_table_and_those_that_do_not_in_blocks(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    titles = ("machine", "spooled", "why")
    show(titles, [("padova/filler-1", "", "It waits for its agent.")])
    table = capsys.readouterr().out
    assert "padova/filler-1" in table
    assert "┃" in table
    assert "spooled" not in table, "a column in which nothing stands is left out"
    assert max(map(len, table.splitlines())) <= 40
    show(
        titles, [("padova/" + "m" * 40, "3", "It waits for its agent, and for more words."), ("padova/a", "1", "")]
    )
    assert capsys.readouterr().out.splitlines() == [
        "machine padova/" + "m" * 40,
        "  spooled  3",
        "  why      It waits for its agent, and",
        "           for more words.",
        "machine padova/a",
        "  spooled  1",
    ]


def test_the_agents_status_breaks_between_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path, now = tmp_path / "spool", datetime.now(UTC).isoformat(timespec="seconds")
    spool = Spool(path)
    trouble = "The broker refuses the connection: not authorised. Check user name and password in edge.toml."
    report = AgentStatus(1, LONG, "broker.example.test:8883", connected=False, since=now, error=trouble)
    StatusFile(path).write(report)
    monkeypatch.setenv("COLUMNS", str(WIDTH))
    show_status(path, as_json=False)
    spool.close()
    text = capsys.readouterr().out
    assert LONG in text
    words = f"not connected to broker.example.test:8883 since {now}: {trouble}"
    assert " ".join(text.split()).count(words) == 1
    assert [line for line in text.splitlines() if len(line) > WIDTH] == [f"machine     {LONG}"]
