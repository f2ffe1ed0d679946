"""Journal tables: each row once, by its key, in SQLite and PostgreSQL."""

import sqlite3
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psycopg
import pytest

from edge_agent.errors import ConfigRejected
from edge_agent.settings import SourceKind
from edge_agent.sources import Context
from edge_agent.sources.sql import build
from tests.support.source_run import SourceRun, source_settings
from wire.clock import PlantClock

AT = datetime(2026, 11, 16, 8, tzinfo=UTC)
COLUMNS = {"table": "journal", "key": "id", "time": "at", "code": "name", "text": "text"}
CREATE = "CREATE TABLE journal (id INTEGER PRIMARY KEY, at {time}, name TEXT, text TEXT)"


class JournalTable:
    """A table that a test writes to."""

    def __init__(self, url: str, execute: Callable[..., Any], mark: str) -> None:
        self.url, self.execute, self._mark = url, execute, mark

    def add(self, key: int, name: str, at: Any = AT) -> None:
        marks = ", ".join([self._mark] * 4)
        at = at.isoformat() if self._mark == "?" and isinstance(at, datetime) else at
        self.execute(f"INSERT INTO journal VALUES ({marks})", (key, at, name, f"text of {name}"))  # noqa: S608


@pytest.fixture(params=["sqlite", "postgresql"])
def journal(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[JournalTable]:
    if request.param == "sqlite":
        database = sqlite3.connect(tmp_path / "journal.db", isolation_level=None)
        database.execute(CREATE.format(time="TEXT"))
        yield JournalTable(f"sqlite:///{tmp_path / 'journal.db'}", database.execute, "?")
        database.close()
    else:
        url = request.getfixturevalue("postgresql").replace("+psycopg", "")
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("DROP TABLE IF EXISTS journal")
            connection.execute(CREATE.format(time="TIMESTAMPTZ"))
            yield JournalTable(url, connection.execute, "%s")


@pytest.fixture
def run(tmp_path: Path, journal: JournalTable) -> Iterator[Callable[..., SourceRun]]:
    runs: list[SourceRun] = []

    def start(**options: Any) -> SourceRun:
        for before in runs:
            before.close()
        table = {"url": journal.url, "poll_seconds": 0.01, **COLUMNS, **options}
        runs[:] = [SourceRun(tmp_path, source_settings(SourceKind.SQL, table))]
        return runs[0].until_read()

    yield start
    for one in runs:
        one.close()


def test_new_rows_are_read_once_and_a_restart_continues(run: Any, journal: JournalTable) -> None:
    journal.add(1, "1")
    first = run()
    journal.add(2, "139")
    journal.add(3, "F139")
    first.until_raised(139, 0)
    assert first.events[0].at == AT
    assert [(code.name, code.text) for code in first.spool.codes()] == [
        ("139", "text of 139"),
        ("F139", "text of F139"),
    ]
    first.stop()
    journal.add(4, "140")
    second = run().until_raised(139, 0, 140)
    assert second.raised == [139, first.spool.epoch and second.raised[1], 140]
    assert second.gaps == []


def test_old_rows_are_read_from_the_beginning_if_that_is_wanted(run: Any, journal: JournalTable) -> None:
    for key in range(1, 1201):
        journal.add(key, str(key))
    found = run(start="beginning").until(lambda run: len(run.raised) == 1200, "all rows are read")
    assert found.raised == list(range(1, 1201))


def test_row_that_is_committed_after_a_later_key_is_not_lost(run: Any, journal: JournalTable) -> None:
    journal.add(1, "1")
    found = run()
    journal.add(4, "104")
    found.until_raised(104)
    journal.add(2, "102")
    found.until_raised(104, 102)
    second = run()
    journal.add(3, "103")
    second.until_raised(104, 102, 103)
    assert second.raised == [104, 102, 103]


def test_row_that_cannot_be_read_is_counted(run: Any, journal: JournalTable) -> None:
    found = run()
    journal.add(1, "")
    journal.add(2, "139")
    found.until_raised(139)
    assert found.spool.skipped == 1
    assert "journal 1" in found.last_skipped


def test_table_that_was_replaced_is_a_gap_and_read_from_its_beginning(run: Any, journal: JournalTable) -> None:
    journal.add(70, "1")
    found = run()
    journal.execute("UPDATE journal SET id = 7, name = '139'")
    found.until_raised(139)
    assert len(found.gaps) == 1


def test_database_that_goes_away_is_a_warning_and_nothing_is_lost(run: Any, journal: JournalTable) -> None:
    found = run()
    journal.execute("ALTER TABLE journal RENAME TO elsewhere")
    found.until(lambda run: "Alarms wait in the journal" in run.warning, "there is a warning")
    journal.execute("ALTER TABLE elsewhere RENAME TO journal")
    journal.add(1, "139")
    assert found.until_raised(139).gaps == []


def test_ignition_preset_reads_active_events(tmp_path: Path) -> None:
    database = sqlite3.connect(tmp_path / "ignition.db", isolation_level=None)
    database.execute(
        "CREATE TABLE alarm_events (id INTEGER PRIMARY KEY, eventid TEXT, source TEXT, displaypath TEXT,"
        " priority INTEGER, eventtype INTEGER, eventflags INTEGER, eventtime INTEGER)"
    )
    for key, kind in ((1, 0), (2, 2), (3, 1)):
        row = (key, "e", "prov:x", "Infeed/Jam", 3, kind, 0, int(AT.timestamp() * 1000) + key)
        database.execute("INSERT INTO alarm_events VALUES (?, ?, ?, ?, ?, ?, ?, ?)", row)
    database.close()
    options = {"url": f"sqlite:///{tmp_path / 'ignition.db'}", "preset": "ignition", "start": "beginning"}
    found = SourceRun(tmp_path, source_settings(SourceKind.SQL, options)).until_raised(0)
    found.close()
    assert len(found.cleared) == 1


def test_doctor_reads_the_last_row(journal: JournalTable) -> None:
    def check(**options: Any) -> tuple[bool | None, str]:
        (finding,) = build({"url": journal.url, **COLUMNS, **options}, Context(PlantClock())).check()
        return finding.ok, finding.message

    assert check()[0] is None
    journal.add(7, "139")
    assert check() == (True, "last row 7 of journal is readable")
    assert check(time="text")[0] is False
    ok, message = check(table="none")
    assert (ok, "none" in message) == (False, True)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"table": 'x"; DROP TABLE y'}, r"sql\.table is wrong"),
        ({"url": "oracle://x"}, r"sql\.url is wrong"),
        ({"time": None}, r"sql\.time is missing"),
    ],
)
def test_mistake_in_the_table_is_one_sentence(options: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ConfigRejected, match=sentence):
        build({"url": "sqlite:///x", **COLUMNS, **options}, Context(PlantClock()))
