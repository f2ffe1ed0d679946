"""The raw log: CSV or JSON lines, one alarm each."""

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wire.events import AlarmEvent
from wire.log_rows import RowReader, RowRejected

AT = datetime(2019, 2, 21, 10, 16, 18, 130000, tzinfo=UTC)


@pytest.mark.parametrize(
    "line",
    [
        "2019-02-21 10:16:18.130000,139,3\n",
        "2019-02-21T10:16:18.130Z,139\r\n",
        '"2019-02-21 11:16:18.130+01:00", 139 ,3',
        '{"timestamp": "2019-02-21 10:16:18.130", "alarm": 139, "serial": 3}',
        '{"at": "2019-02-21T10:16:18.130Z", "code": "139"}',
        "\ufeff2019-02-21 10:16:18.130000,139,3",
    ],
)
def test_both_layouts_give_the_same_alarm(line: str) -> None:
    assert RowReader().read(line) == (AT, 139)


@pytest.mark.parametrize("line", ["", "\n", "timestamp,alarm,serial\n", "Timestamp,Alarm\n"])
def test_headers_and_empty_lines_are_no_alarms(line: str) -> None:
    assert RowReader().read(line) is None


def test_rows_of_another_serial_are_passed_over() -> None:
    assert RowReader(serial="4").read("2019-02-21 10:16:18,139,3") is None
    assert RowReader(serial="3").read("2019-02-21 10:16:18,139,3") is not None


def test_rows_before_a_moment_are_passed_over_and_the_moment_itself_is_not() -> None:
    reader = RowReader(since=AT)
    assert reader.read("2019-02-21 10:16:18.129,139,3") is None
    assert reader.read("2019-02-21 10:16:18.130,139,3") == (AT, 139)


def test_a_naive_time_is_read_in_the_plants_zone() -> None:
    alarm = RowReader(zone=ZoneInfo("Europe/Rome")).read("2019-02-21 11:16:18.130,139")
    assert alarm == (AT, 139)


@pytest.mark.parametrize(
    "line",
    [
        "2019-02-21 10:16:18",
        "yesterday,139",
        "2019-02-21 10:16:18,x",
        "2019-02-21 10:16:18,-1",
        "2019-02-21 10:16:18,1.5",
        "2019-02-21 10:16:18,99999999999",
        "9999-12-31 23:59:59,1",
        "0001-01-01 00:00:00+14:00,1",
        "{",
        '{"timestamp": 5, "alarm": 1}',
        '{"timestamp": "2019-02-21", "alarm": true}',
    ],
)
def test_anything_else_is_rejected_with_a_reason(line: str) -> None:
    with pytest.raises(RowRejected):
        RowReader().read(line)


@given(st.text(max_size=80) | st.builds("{},{},{}".format, st.datetimes(), st.integers(), st.text(max_size=3)))
def test_what_passes_here_the_service_accepts(line: str) -> None:
    try:
        alarm = RowReader().read(line)
    except RowRejected:
        return
    if alarm is not None:
        AlarmEvent(seq=1, code=alarm.code, at=alarm.at)
