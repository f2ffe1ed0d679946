"""Histories with any columns: presets, names of alarms, states, serials, and what cannot be read."""

from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from sqlalchemy import select

from edge_agent.settings import SourceKind
from service.app.stores import Stores
from service.database.tables import events, quarantine
from service.errors import InputRejected
from service.ingest.build import time_policy
from service.learning.history_file import ImportFile
from service.learning.history_import import ImportResult, load_history
from service.learning.history_preview import preview_history
from service.machines.models import Machine
from service.settings import Settings
from tests.service.conftest import NOW
from tests.support.source_run import SourceRun, source_settings
from wire.columns import ColumnOptions, with_preset
from wire.enums import EntryOrigin
from wire.rest.histories import HistoryPreview
from wire.timestamps import from_us

ROME = ZoneInfo("Europe/Rome")
DAY = (NOW - timedelta(days=3)).astimezone(ROME).replace(hour=8, minute=0, second=0, microsecond=0)
WINCC = (
    '"Time_ms";"MsgProc";"StateAfter";"MsgClass";"MsgNumber";"TimeString";"MsgText";"PLC"\r\n'
    f'1;1;1;1;139;"{DAY:%d.%m.%Y} 08:00:00";"Film torn";"PLC_1"\r\n'
    f'2;1;0;1;139;"{DAY:%d.%m.%Y} 08:01:00";"Film torn";"PLC_1"\r\n'
    f'3;1;3;1;139;"{DAY:%d.%m.%Y} 08:02:00";"Film torn";"PLC_1"\r\n'
    f'4;1;1;1;26;"{DAY:%d.%m.%Y} 08:03:00";"Door open";"PLC_1"\r\n'
)
IGNITION = (
    "EventId,Source,DisplayPath,EventTime,EventState,Priority\n"
    f"a,prov:x,Infeed/Jam,{DAY:%Y-%m-%d} 08:00:00,Active,High\n"
    f"a,prov:x,Infeed/Jam,{DAY:%Y-%m-%d} 08:01:00,Clear,High\n"
    f"b,prov:x,Door,{DAY:%Y-%m-%d} 08:02:00,Active,High\n"
)
GERMAN = {
    "delimiter": ";",
    "encoding": "cp1252",
    "date": "Datum",
    "time": "Uhrzeit",
    "code": "Störung",
    "time_format": "%d.%m.%Y %H:%M:%S",
}
GERMAN_LOG = f"Datum;Uhrzeit;Störung\n{DAY:%d.%m.%Y};08:00:00;Tür offen\n{DAY:%d.%m.%Y};08:01:00;139\n"


def log_of(folder: Path, content: str | bytes, only: str | None = None, **options: Any) -> ImportFile:
    path = folder / "log.csv"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    columns = ColumnOptions.model_validate(with_preset(options)) if options else None
    return ImportFile(path, only, ROME, "export.csv", columns)


def load(settings: Settings, stores: Stores, machine: Machine, log: ImportFile) -> ImportResult:
    policy = time_policy(settings)
    return load_history(machine, log, recorder=stores.events, now=NOW, policy=policy, stored=stores.events)


def preview(settings: Settings, log: ImportFile) -> HistoryPreview:
    return preview_history(log, now=NOW, policy=time_policy(settings))


def stored(stores: Stores) -> list[tuple[datetime, int]]:
    with stores.database.read() as connection:
        rows = connection.execute(select(events.c.at_us, events.c.code).order_by(events.c.at_us))
        return [(from_us(row.at_us), row.code) for row in rows]


def at(minute: int) -> datetime:
    return DAY + timedelta(minutes=minute)


def test_a_wincc_export_stores_what_was_raised_at_local_times(
    settings: Settings, stores: Stores, filler: Machine, tmp_path: Path
) -> None:
    loaded = load(settings, stores, filler, log_of(tmp_path, WINCC, preset="wincc"))
    assert stored(stores) == [(at(0), 139), (at(3), 26)]
    assert (loaded.rows, loaded.stored, loaded.rejected) == (4, 2, 0)
    assert loaded.notes == [
        "1 ignored: they clear an alarm.",
        "1 ignored: their state is neither raised nor cleared.",
    ]


@pytest.mark.parametrize(
    ("content", "options"),
    [(IGNITION.encode(), {"preset": "ignition"}), (GERMAN_LOG.encode("cp1252"), GERMAN)],
)
def test_named_alarms_have_the_numbers_that_the_agent_gives_them(
    settings: Settings, stores: Stores, filler: Machine, tmp_path: Path, content: bytes, options: dict[str, Any]
) -> None:
    log = log_of(tmp_path, content, **options)
    load(settings, stores, filler, log)
    agent = SourceRun(
        tmp_path,
        source_settings(SourceKind.TAIL, options, source_path=log.path, source_timezone="Europe/Rome"),
    ).until_raised(2)
    assert [code for _, code in stored(stores)] == agent.raised
    agent.close()


def test_a_code_map_gives_its_numbers(settings: Settings, stores: Stores, filler: Machine, tmp_path: Path) -> None:
    log = log_of(tmp_path, IGNITION, preset="ignition")
    load(settings, stores, filler, replace(log, code_map={"Infeed/Jam": 7, "Door": 8}))
    assert stored(stores) == [(at(0), 7), (at(2), 8)]


@pytest.mark.parametrize(
    ("content", "preset", "texts"),
    [
        (WINCC, "wincc", {26: "Door open", 139: "Film torn"}),
        (IGNITION, "ignition", {1_489_038_821: "Door", 1_857_105_414: "Infeed/Jam"}),
    ],
)
def test_the_catalogue_gains_what_the_file_says_of_its_codes(
    settings: Settings,
    stores: Stores,
    filler: Machine,
    tmp_path: Path,
    content: str,
    preset: str,
    texts: dict[int, str],
) -> None:
    load(settings, stores, filler, log_of(tmp_path, content, preset=preset))
    entries = stores.catalogue.entries().values()
    assert {entry.code: entry.text for entry in entries} == texts
    assert {entry.origin for entry in entries} == {EntryOrigin.MACHINE}


def test_serials_are_read_from_their_column(
    settings: Settings, stores: Stores, filler: Machine, tmp_path: Path
) -> None:
    rows = f"t,n,m\n{DAY:%Y-%m-%d} 08:00,5,A\n{DAY:%Y-%m-%d} 08:01,6,B\nx,7,B\n"
    options = {"time": "t", "code": "n", "serial": "m"}
    with pytest.raises(InputRejected, match=r"Its serials: A \(1 row\), B \(1 row\)\."):
        load(settings, stores, filler, log_of(tmp_path, rows, **options))
    shown = preview(settings, log_of(tmp_path, rows, only="A", **options))
    assert (shown.problem, shown.rows, shown.rejected) == (None, 1, 0), "the unreadable row is another machine's"
    load(settings, stores, filler, log_of(tmp_path, rows, only="A", **options))
    assert stored(stores) == [(at(0), 5)]


@pytest.mark.parametrize(
    ("content", "options", "field", "words"),
    [
        (WINCC, {}, None, "It has the columns of the preset wincc: choose that."),
        (WINCC.replace(";", ","), {}, None, "preset wincc: choose that and the delimiter ,."),
        (WINCC, {"preset": "ignition"}, "delimiter", "has no commas between its columns, but semicolons"),
        (IGNITION, {"preset": "wincc"}, "delimiter", "has no semicolons between its columns, but commas"),
        (IGNITION, {"preset": "wincc", "delimiter": ","}, "time", "no column TimeString, MsgNumber, MsgText"),
        (IGNITION, {"preset": "wincc", "delimiter": ","}, "time", "Its columns: EventId, Source, DisplayPath"),
        (IGNITION, {"preset": "ignition", "code": "Alarm"}, "code", "has no column Alarm. Its columns: EventId"),
        (IGNITION, {"time": "EventTime", "code": "Source", "serial": "X"}, "serial_column", "has no column X"),
        (GERMAN_LOG, {}, None, "If its columns have other names, name those of time and code."),
        (GERMAN_LOG.encode("cp1252"), GERMAN | {"encoding": "utf-8"}, "code", "has no column Störung"),
        (
            "t,n\n2026-11-10 08:00:00,Tür\n".encode("cp1252"),
            {"time": "t", "code": "n"},
            None,
            "the line is not utf-8; give the encoding, for example cp1252",
        ),
        (WINCC.encode("utf-16"), {"preset": "wincc"}, None, "it is text in UTF-16; save it as UTF-8"),
        (b"PK\x03\x04\x00\x00rubbish\n", {"preset": "wincc"}, None, "an Excel workbook; save its rows as CSV"),
        (b"", {"preset": "wincc"}, None, "export.csv is empty; choose a file"),
        (WINCC.splitlines()[0], {"preset": "wincc"}, None, "export.csv has no row; choose a file"),
        (WINCC, {"preset": "wincc", "time_format": "%Y"}, None, "is not a time like %Y"),
        (WINCC, {"preset": "wincc", "raised": ("on",)}, "raised", "No row of export.csv raises an alarm"),
    ],
)
def test_a_file_that_cannot_be_read_so_is_refused_in_a_sentence_and_leaves_nothing(
    settings: Settings,
    stores: Stores,
    filler: Machine,
    tmp_path: Path,
    content: str | bytes,
    options: dict[str, Any],
    field: str | None,
    words: str,
) -> None:
    log = log_of(tmp_path, content, **options)
    with pytest.raises(InputRejected) as refused:
        load(settings, stores, filler, log)
    assert words in str(refused.value)
    assert refused.value.pointer == (field and f"query/{field}")
    shown = preview(settings, log)
    assert (shown.problem, shown.field, shown.rows) == (str(refused.value), field, 0)
    with stores.database.read() as connection:
        assert [connection.execute(select(table)).first() for table in (events, quarantine)] == [None, None]


def test_a_preview_shows_what_a_file_holds(settings: Settings, tmp_path: Path) -> None:
    old = NOW - timedelta(days=900)
    rows = IGNITION + f"c,x,Door,{old:%Y-%m-%d} 08:00:00,Active,Low\n"
    rows += f"d,x,Door,yesterday,Active,Low\ne,x,Door,{DAY:%Y-%m-%d} 08:03:00,Ack,Low\n"
    shown = preview(settings, log_of(tmp_path, rows, preset="ignition"))
    assert (shown.problem, shown.lines, shown.rows, shown.time_zone) == (None, 7, 2, "Europe/Rome")
    assert (shown.first_at, shown.last_at) == (at(0), at(2))
    assert (shown.cleared, shown.other_states, shown.too_old, shown.rejected) == (1, 1, 1, 1)
    assert [(one.name, one.rows) for one in shown.codes] == [("Door", 2), ("Infeed/Jam", 1)]
    assert [(one.line, one.meaning, one.at) for one in shown.first_rows[:2]] == [
        (2, "raised", at(0)),
        (3, "cleared", None),
    ]
    assert shown.first_rows[0].text == IGNITION.splitlines()[1]
    assert shown.rejected_rows[0].line == 6
    assert shown.rejected_rows[0].reason == "'yesterday' is not a time like 2026-11-16 08:00:00.123"
    assert (shown.suggested_preset, shown.columns[:2]) == ("ignition", ["EventId", "Source"])
    assert "1 ignored: older than retention_days=400" in shown.notes[2]


def test_a_preview_counts_as_the_import_does(
    settings: Settings, stores: Stores, filler: Machine, tmp_path: Path
) -> None:
    lines = [f"{at(n):%Y-%m-%d %H:%M:%S},{n % 7},{n % 2}\n" for n in range(3000)]
    lines[2500:2500] = ["rubbish\n"]
    log = log_of(tmp_path, "timestamp,alarm,serial\n" + "".join(lines), only="1")
    shown = preview(settings, log)
    loaded = load(settings, stores, filler, log)
    assert (shown.rows, shown.rejected, shown.too_old) == (loaded.stored, loaded.rejected, 0)
    assert sum(one.rows for one in shown.codes) == loaded.stored == 1500
    assert {(one.serial, one.rows) for one in shown.serials} == {("0", 1500), ("1", 1500)}
    assert len(shown.first_rows) == 10
    assert {one.serial for one in shown.first_rows} == {"1"}
