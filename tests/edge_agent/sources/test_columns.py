"""Logs with any columns: delimiters, date formats, headers, encodings, presets."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from edge_agent.errors import ConfigRejected
from edge_agent.settings import SourceKind
from edge_agent.sources import Context
from edge_agent.sources.codes import CodeBook
from edge_agent.sources.columns import ColumnReader, parse_columns
from tests.support.source_run import SourceRun, source_settings
from wire.clock import PlantClock
from wire.log_rows import RowRejected

ROME = Context(PlantClock(), CodeBook({"Infeed/Jam": 7}), ZoneInfo("Europe/Rome"))
GERMAN = {
    "delimiter": ";",
    "date": "Datum",
    "time": "Uhrzeit",
    "code": "Nr",
    "time_format": "%d.%m.%Y %H:%M:%S",
}
WINCC_MS = {"preset": "wincc", "time": "Time_ms", "time_format": "wincc_ms"}
WINCC = '"Time_ms";"MsgProc";"StateAfter";"MsgClass";"MsgNumber";"TimeString";"MsgText";"PLC"\n'
IGNITION = "EventId,Source,DisplayPath,EventTime,EventState,Priority\n"


def reader(first_line: str, **options: Any) -> ColumnReader:
    made = ColumnReader(parse_columns(options), ROME)
    made.start_file(first_line)
    return made


@pytest.mark.parametrize(
    ("header", "line", "options"),
    [
        ("Datum;Uhrzeit;Nr\n", "16.11.2026;08:00:00;7", GERMAN),
        ("", "7|2026-11-16T07:00:00Z", {"delimiter": "|", "header": False, "time": "2", "code": "1"}),
        ("t,n\n", "1794812400,7", {"time": "t", "code": "n"}),
        ("t,n\n", "1794812400000,7.0", {"time": "t", "code": "n"}),
        ("t\tn\n", "2026-11-16 08:00:00\tInfeed/Jam", {"delimiter": "\t", "time": "t", "code": "n"}),
        (WINCC, '46342333333,3333;1;1;1;7;"16.11.2026 08:00:00";"Jam";"PLC_1"', {"preset": "wincc"}),
        (WINCC, '46342333333,3333;1;1;1;7;"x";"Jam";"PLC_1"', WINCC_MS),
        (IGNITION, "a-1,prov:x,Infeed/Jam,2026-11-16 08:00:00,Active,High", {"preset": "ignition"}),
    ],
)
def test_line_is_read_by_its_columns(header: str, line: str, options: dict[str, Any]) -> None:
    record = reader(header, **options).read(line + "\r\n")
    assert record is not None
    at = record.alarm.at.replace(microsecond=0)
    assert (record.alarm.code, at, record.kind) == (7, datetime(2026, 11, 16, 7, tzinfo=UTC), None)


@pytest.mark.parametrize(
    ("header", "line", "preset", "kind"),
    [
        (WINCC, '46342333333,3333;1;0;1;7;"16.11.2026 08:00:00";"Jam";"PLC_1"', "wincc", "cleared"),
        (WINCC, '46342333333,3333;1;3;1;7;"16.11.2026 08:00:00";"Jam";"PLC_1"', "wincc", "acknowledged"),
        (IGNITION, "a-1,prov:x,Infeed/Jam,2026-11-16 08:00:00,Clear,High", "ignition", "cleared"),
        (IGNITION, "a-1,prov:x,Infeed/Jam,2026-11-16 08:00:00,Ack,High", "ignition", "acknowledged"),
    ],
)
def test_line_may_end_or_acknowledge_an_alarm(header: str, line: str, preset: str, kind: str) -> None:
    record = reader(header, preset=preset).read(line)
    assert record is not None
    assert (record.alarm.code, record.kind) == (7, kind)


@pytest.mark.parametrize(
    ("header", "line", "preset"),
    [
        (WINCC, '46342333333,3333;1;9;1;7;"16.11.2026 08:00:00";"Jam";"PLC_1"', "wincc"),
        (WINCC, WINCC, "wincc"),
        (WINCC, "\n", "wincc"),
    ],
)
def test_line_that_raises_nothing_is_ignored(header: str, line: str, preset: str) -> None:
    assert reader(header, preset=preset).read(line) is None


def test_only_rows_of_the_serial_are_read() -> None:
    read = ColumnReader(parse_columns({"time": "t", "code": "n", "serial": "s"}), ROME, "4711")
    read.start_file("t,n,s\n")
    assert read.read("2026-11-16 08:00:00,7,4712") is None
    assert read.read("2026-11-16 08:00:00,7,4711") is not None


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("2026-11-16 08:00:00", "no column n"),
        ("16.11.2026,7", "'16.11.2026' is not a time like 2026-11-16"),
        ("1999-01-01,7", "outside 2000"),
        ("9999-12-31T23:59:59-05:00,7", "outside 2000"),
        ("2026-11-16 08:00:00\r,7\rx", "the line is not CSV"),
    ],
)
def test_row_that_cannot_be_read_says_why(line: str, message: str) -> None:
    with pytest.raises(RowRejected, match=message):
        reader("t,n\n", time="t", code="n").read(line)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"time": "t"}, "give the columns code and time"),
        ({"preset": "wincc", "encoding": "utf-16"}, "cannot be followed"),
        ({"preset": "scada"}, r"tail\.preset is wrong"),
        ({"preset": "wincc", "encoding": "klingon"}, "there is no encoding klingon; try utf-8 or cp1252"),
        ({"preset": "wincc", "delimiter": "\n"}, "give a sign such as ; or ,"),
        ({"preset": "wincc", "time_format": "DD.MM.YYYY"}, "give auto, wincc_ms or a format such as"),
        ({"preset": "wincc", "time_format": "%d.%d"}, "give auto, wincc_ms or a format such as"),
    ],
)
def test_mistake_in_the_table_is_one_sentence(options: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ConfigRejected, match=sentence):
        parse_columns(options)


def test_restart_in_the_middle_of_a_file_knows_its_header(tmp_path: Path) -> None:
    log = tmp_path / "log.csv"
    options = {"delimiter": ";", "time": "Zeit", "code": "Störung", "encoding": "cp1252"}
    settings = source_settings(SourceKind.TAIL, options, source_path=log)
    log.write_bytes("Störung;Zeit\nTür offen;2026-11-16 08:00:00\n".encode("cp1252"))
    first = SourceRun(tmp_path, settings).until_raised(1)
    assert [code.name for code in first.spool.codes()] == ["Tür offen"]
    first.close()
    with log.open("ab") as file:
        file.write("139;2026-11-16 08:00:01\nTür offen;2026-11-16 08:00:02\nx\n".encode("cp1252"))
    second = SourceRun(tmp_path, settings)
    second.until(lambda run: run.spool.skipped == 1, "all rows are read")
    assert second.raised == [second.spool.codes()[0].code, 139, second.spool.codes()[0].code]
    second.close()
