"""Alarm figures, timelines and CSV over REST, on a real store."""

import csv
import io
from datetime import datetime, timedelta
from typing import Any

import httpx
import pytest

from service.app.service import Service
from service.app.stores import Stores
from service.database.event_row import FROM_THE_FUTURE, EventRow
from service.http.csv_text import csv_chunks, escape_formula
from service.machines.catalogue import CatalogueEntry
from service.machines.events import EventWrite, GapRow
from service.machines.models import Machine
from service.machines.silence import SilentMachine
from tests.service.conftest import EPOCH, FILLER, NOW, connect_agent, enrolled, raise_alarms
from tests.support.api_client import BASE, Client, problem
from wire.identity import MachineId
from wire.rest.alarm_metrics import AlarmMetricsReport
from wire.rest.timelines import TimelineView
from wire.timestamps import isoformat, to_us

HOUR, MINUTE, SECOND = timedelta(hours=1), timedelta(minutes=1), timedelta(seconds=1)
FLOOD = NOW - 5 * HOUR
CHATTER = NOW - 2 * HOUR
FINDINGS = ("/v1/alarm-metrics/floods.csv", "/v1/alarm-metrics/chatter.csv", "/v1/alarm-metrics/standing.csv")


@pytest.fixture
def client(service: Service) -> Client:
    return Client(service)


@pytest.fixture
def busy(stores: Stores, filler: Machine) -> Machine:
    """A day in which 8 stands, 139 floods, and 26 chatters."""
    stores.catalogue.merge(
        [
            CatalogueEntry(139, "Film torn", "high", target=True),
            CatalogueEntry(26, "Door open", "low", target=True),
        ]
    )
    standing = [(NOW - 27 * HOUR + n * 30 * MINUTE, 8) for n in range(52)]
    flood = [(FLOOD + n * 31 * SECOND, 139) for n in range(20)]
    chatter = [(CHATTER + n * 10 * SECOND, 26) for n in range(4)]
    raise_alarms(stores, filler, *standing, *flood, *chatter)
    connect_agent(stores, filler)
    return filler


@pytest.mark.usefixtures("busy")
def test_figures_say_how_many_how_dense_which_and_what_stands_out(client: Client) -> None:
    answer = client.get("/v1/alarm-metrics")
    found = answer.json()
    AlarmMetricsReport.model_validate_json(answer.content)
    assert (found["machines"], found["by"], found["shift"], found["excluded"]) == (1, "machine", None, 0)
    total = found["total"]
    assert total | {"flood_share": None} == {
        "alarms": 76, "machines": 1, "machine_days": 1.125, "alarms_per_day": 67.6, "band": "acceptable",
        "peak_10min": 21, "floods": 1, "flood_share": None, "alarms_in_floods": 20 + 1, "chattering": 4,
        "standing": 1, "stale": None, "active": None, "downtime_seconds": None,
    }  # fmt: skip
    (line,) = found["rows"]
    assert (line["site"], line["machine"], line["metrics"]) == (*FILLER, total)
    assert [(one["code"], one["text"], one["severity"], one["alarms"], one["share"]) for one in found["top"]] == [
        (8, "Alarm 8", "medium", 52, 0.6842),
        (139, "Film torn", "high", 20, 0.2632),
        (26, "Door open", "low", 4, 0.0526),
    ]
    (flood,) = found["floods"]
    assert (flood["start"], flood["end"]) == (isoformat(FLOOD), isoformat(FLOOD + (15 * 31 + 600) * SECOND))
    assert (flood["alarms"], flood["peak_10min"], flood["top_text"]) == (21, 21, "Film torn")
    assert found["chatter"] == [
        {
            "site": "padova", "machine": "filler-1", "code": 26, "text": "Door open", "bursts": 1, "alarms": 4,
            "last_at": isoformat(CHATTER + 30 * SECOND),
        }
    ]  # fmt: skip
    (standing,) = found["standing"]
    assert (standing["code"], standing["since"], standing["alarms"]) == (8, isoformat(NOW - 27 * HOUR), 52)
    assert found["counts"] == {"rows": 1, "floods": 1, "chatter": 1, "standing": 1, "stale": 0, "active": 0}
    assert found["limits"] == {"acceptable_up_to": 150, "excessive_from": 300}
    assert [(one["shift"], one["start"]) for one in found["shifts"]] == [
        ("early", "06:00"), ("late", "14:00"), ("night", "22:00"),
    ]  # fmt: skip
    assert (found["rate"]["bucket"], found["rate"]["time_zone"]) == ("hour", "Europe/Rome")
    assert sum(bucket["alarms"] for bucket in found["rate"]["buckets"]) == 76


@pytest.mark.usefixtures("busy")
@pytest.mark.parametrize(
    ("by", "key"), [("site", "site"), ("shift", "shift"), ("code", "code"), ("day", "day"), ("hour", "hour")]
)
def test_lines_can_be_by_anything_and_their_keys_say_what(client: Client, by: str, key: str) -> None:
    found = client.get("/v1/alarm-metrics", by=by).json()
    keys = ("site", "machine", "shift", "code", "day", "hour")
    for line in found["rows"]:
        assert [name for name in keys if line[name] is not None] == [key]
    assert sum(line["metrics"]["alarms"] for line in found["rows"]) == 76
    if by == "code":
        assert found["rows"][1]["text"] == "Film torn"
        figures = found["rows"][1]["metrics"]
        assert (figures["band"], figures["floods"], figures["flood_share"]) == (None, None, None)
        assert (figures["alarms_per_day"], figures["peak_10min"]) == (17.8, 20)


@pytest.mark.usefixtures("busy")
def test_lists_are_bounded_and_say_how_many_there_are(client: Client, stores: Stores) -> None:
    for number in range(120):
        machine = enrolled(stores.enrolments, MachineId("lyon", f"m{number}"))
        raise_alarms(stores, machine, *((NOW - HOUR + n * 10 * SECOND, 26) for n in range(12)))
    found = client.get("/v1/alarm-metrics", site="lyon").json()
    assert [len(found[name]) for name in ("floods", "chatter", "rows")] == [100, 100, 120]
    assert (found["counts"]["floods"], found["counts"]["chatter"], found["total"]["floods"]) == (120, 120, 120)


def test_a_fleet_without_machines_has_figures_of_nothing(client: Client) -> None:
    found = client.get("/v1/alarm-metrics").json()
    assert (found["machines"], found["total"]["alarms"], found["total"]["band"]) == (0, 0, None)
    assert (found["rows"], found["top"]) == ([], [])


WRONG: list[dict[str, Any]] = [
    {"site": "Padova"},
    {"machine": "filler-1"},
    {"since": "yesterday"},
    {"since": "2026-11-16T00:00:00"},
    {"since": isoformat(NOW), "until": isoformat(NOW - HOUR)},
    {"since": isoformat(NOW - timedelta(days=93))},
    {"since": "2000-01-01T00:00:00Z"},
    {"shift": "lunch"},
    {"shift": "x" * 40},
    {"by": "moon"},
]


@pytest.mark.parametrize(
    "path", ["/v1/alarm-metrics", "/v1/alarm-metrics/top.csv", "/v1/alarm-metrics/rows.csv", *FINDINGS]
)
@pytest.mark.parametrize("query", WRONG)
def test_a_wrong_question_about_figures_is_refused(
    shared_client: Client, path: str, query: dict[str, Any]
) -> None:
    problem(shared_client.get(path, **query), 422)


@pytest.mark.parametrize(
    "path",
    ["/v1/alarm-metrics", "/v1/alarm-metrics/top.csv", "/v1/alarm-metrics/rows.csv", *FINDINGS, "/v1/alarms.csv"],
)
def test_figures_of_an_unknown_place_are_not_found(shared_client: Client, path: str) -> None:
    assert shared_client.get(path, site="atlantis").status_code == 404
    assert shared_client.get(path, site="padova", machine="none").status_code == 404


@pytest.mark.usefixtures("busy")
def test_the_very_edges_of_time_are_answered(client: Client) -> None:
    for edge in ("2000-01-01T00:00:01Z", "2099-12-31T23:59:59.999999Z"):
        assert client.get("/v1/alarm-metrics", until=edge, by="day").json()["total"]["alarms"] == 0
        assert client.get(f"{BASE}/timeline", until=edge).json()["count"] == 0


@pytest.mark.usefixtures("busy")
def test_a_timeline_has_the_alarms_and_what_they_make(
    client: Client, service: Service, stores: Stores, filler: Machine
) -> None:
    gap = GapRow(filler.row_id, EPOCH, 1, 5, to_us(NOW - 3 * HOUR), to_us(NOW - 2 * HOUR), "spool_full")
    stores.events.commit(EventWrite(to_us(NOW), gaps=[gap]))
    answer = client.get(f"{BASE}/timeline")
    found = answer.json()
    TimelineView.model_validate_json(answer.content)
    assert (found["name"], found["time_zone"]) == ("Filler 1", "Europe/Rome")
    assert (found["count"], len(found["alarms"]), found["truncated"]) == (76, 76, False)
    assert [one["at"] for one in found["alarms"]] == sorted(one["at"] for one in found["alarms"])
    assert [(one["start"], one["alarms"]) for one in found["floods"]] == [(isoformat(FLOOD), 21)]
    assert found["chatter"] == [
        {
            "code": 26, "text": "Door open", "start": isoformat(CHATTER),
            "end": isoformat(CHATTER + 30 * SECOND), "alarms": 4,
        }
    ]  # fmt: skip
    assert [one["code"] for one in found["standing"]] == [8]
    assert [(one["dropped"], one["reason"]) for one in found["gaps"]] == [(5, "spool_full")]
    assert (found["last_seen_at"], found["online"], found["silent_since"]) == (isoformat(NOW), True, None)
    service.machines.silence.silent = [SilentMachine(FILLER, NOW - HOUR, 3.0, 2.0)]
    assert client.get(f"{BASE}/timeline").json()["silent_since"] == isoformat(NOW - HOUR)
    part = client.get(f"{BASE}/timeline", since=isoformat(CHATTER), until=isoformat(NOW)).json()
    assert (part["floods"], len(part["chatter"]), len(part["standing"])) == ([], 1, 1)


def test_a_timeline_holds_the_newest_alarms_and_says_that_there_were_more(
    client: Client, stores: Stores, filler: Machine
) -> None:
    raise_alarms(stores, filler, *((NOW - HOUR + n * timedelta(milliseconds=500), 26) for n in range(5001)))
    found = client.get(f"{BASE}/timeline").json()
    assert (found["count"], len(found["alarms"]), found["truncated"]) == (5001, 5000, True)
    assert found["alarms"][0]["at"] == isoformat(NOW - HOUR + timedelta(milliseconds=500))
    (flood,) = found["floods"]
    assert (flood["alarms"], flood["end"]) == (5001, isoformat(NOW - HOUR + (2498 + 600) * SECOND))


@pytest.mark.parametrize(
    "query",
    [
        {"since": "now"},
        {"since": isoformat(NOW - timedelta(days=32))},
        {"since": isoformat(NOW), "until": isoformat(NOW)},
    ],
)
def test_a_wrong_question_about_a_timeline_is_refused(shared_client: Client, query: dict[str, Any]) -> None:
    problem(shared_client.get(f"{BASE}/timeline", **query), 422)
    problem(shared_client.get("/v1/machines/padova/none/timeline"), 404)


def table(answer: httpx.Response) -> list[list[str]]:
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "text/csv; charset=utf-8"
    assert answer.content.count(b"\n") == answer.content.count(b"\r\n")
    return list(csv.reader(io.StringIO(answer.content.decode("utf-8"), newline=""), strict=True))


def test_every_alarm_leaves_as_csv_in_time_order_with_plant_time_and_flags(
    client: Client, stores: Stores, filler: Machine
) -> None:
    stores.catalogue.merge([CatalogueEntry(139, 'Film "torn", señor', "high", target=True)])
    at = datetime.fromisoformat("2026-10-25T00:30:00Z")  # half past two in Padova, for the first time that night
    raise_alarms(stores, filler, (at + HOUR, 139), (at, 139), (at + 30 * MINUTE, 7))
    future = EventRow(filler.row_id, EPOCH, 1, 7, to_us(at + 45 * MINUTE), FROM_THE_FUTURE)
    stores.events.commit(EventWrite(to_us(NOW), events=[future]))
    answer = client.get("/v1/alarms.csv")
    head, *rows = table(answer)
    assert head == [
        "site", "machine", "at", "plant_time", "code", "text", "severity", "received_at", "flag", "cleared_at",
    ]  # fmt: skip
    assert rows[0] == [
        "padova", "filler-1", "2026-10-25T00:30:00.000Z", "2026-10-25T02:30:00.000+02:00", "139",
        'Film "torn", señor', "high", isoformat(NOW), "", "",
    ]  # fmt: skip
    assert [(row[3][11:16], row[4], row[8]) for row in rows] == [
        ("02:30", "139", ""), ("02:00", "7", ""), ("02:15", "7", "from_the_future"), ("02:30", "139", ""),
    ]  # fmt: skip
    assert answer.headers["content-disposition"] == 'attachment; filename="alarms.csv"'


@pytest.mark.usefixtures("busy")
def test_an_export_can_be_narrowed_and_its_file_name_says_how(client: Client, stores: Stores) -> None:
    other = enrolled(stores.enrolments, MachineId("lyon", "m1"))
    raise_alarms(stores, other, (NOW - HOUR, 26))
    assert [row[0] for row in table(client.get("/v1/alarms.csv", code=26))[1:]] == ["lyon", *["padova"] * 4]
    since = "2026-11-16T08:00:00+02:00"
    part = client.get("/v1/alarms.csv", site="padova", machine="filler-1", since=since, until=isoformat(NOW))
    assert len(table(part)) == 1 + 4 + 2
    name = 'attachment; filename="alarms_padova_filler-1_20261116T0600Z_20261116T0807Z.csv"'
    assert part.headers["content-disposition"] == name


@pytest.mark.parametrize(
    "query",
    [
        {"code": -1},
        {"code": "x"},
        {"machine": "filler-1"},
        {"since": isoformat(NOW), "until": isoformat(NOW)},
        {"until": "never"},
        {"site": "../etc"},
    ],
)
def test_a_wrong_export_is_refused_before_its_first_line(shared_client: Client, query: dict[str, Any]) -> None:
    problem(shared_client.get("/v1/alarms.csv", **query), 422)


@pytest.mark.usefixtures("busy")
@pytest.mark.parametrize("name", ["floods", "chatter", "standing"])
def test_what_stands_out_leaves_as_csv_as_it_is_listed(client: Client, name: str) -> None:
    answer = client.get(f"/v1/alarm-metrics/{name}.csv", site="padova")
    head, *rows = table(answer)
    listed = client.get("/v1/alarm-metrics").json()[name]
    assert len(listed) == 1
    told = [{key: "" if value is None else str(value) for key, value in one.items()} for one in listed]
    assert [dict(zip(head, row, strict=True)) for row in rows] == told
    assert answer.headers["content-disposition"].startswith(f'attachment; filename="{name}_padova_2026')


@pytest.mark.usefixtures("busy")
def test_the_tables_of_figures_leave_as_csv(client: Client) -> None:
    top = client.get("/v1/alarm-metrics/top.csv", site="padova", shift="early")
    assert table(top)[0] == [
        "code", "text", "severity", "alarms", "share", "machines",
        "median_seconds", "longest_seconds", "active_seconds", "downtime_seconds",
    ]  # fmt: skip
    assert top.headers["content-disposition"].startswith('attachment; filename="top-alarms_padova_early_2026')
    whole = table(client.get("/v1/alarm-metrics/top.csv"))
    assert whole[1] == ["8", "Alarm 8", "medium", "52", "0.6842", "1", "", "", "", ""]
    head, *rows = table(client.get("/v1/alarm-metrics/rows.csv", by="code"))
    lines = client.get("/v1/alarm-metrics", by="code").json()["rows"]
    assert len(rows) == len(lines)
    for row, line in zip(rows, lines, strict=True):
        flat = {name: value for name, value in line.items() if name != "metrics"} | line["metrics"]
        assert head == list(flat)
        assert row == ["" if value is None else str(value) for value in flat.values()]


@pytest.mark.parametrize("text", ["=1+1", "+49", "-2", "@SUM(A1)", "\t=1", "\r=1", "\n=1"])
def test_no_alarm_text_becomes_a_formula_in_a_spreadsheet(text: str) -> None:
    assert escape_formula(text) == f"'{text}"
    written = io.StringIO("".join(csv_chunks(["a"], [[text]])), newline="")
    assert list(csv.reader(written, strict=True)) == [["a"], [f"'{text}"]]
    assert (escape_formula("Film torn"), escape_formula("5-2"), escape_formula("")) == ("Film torn", "5-2", "")


def test_a_text_that_looks_like_a_formula_is_disarmed_in_the_file(
    client: Client, stores: Stores, filler: Machine
) -> None:
    stores.catalogue.merge([CatalogueEntry(5, '=HYPERLINK("http://x","y")', "low", target=False)])
    raise_alarms(stores, filler, (NOW - HOUR, 5))
    for path, column in (("/v1/alarms.csv", 5), ("/v1/alarm-metrics/top.csv", 1)):
        assert table(client.get(path))[1][column] == '\'=HYPERLINK("http://x","y")'
    by_code = table(client.get("/v1/alarm-metrics/rows.csv", by="code"))
    assert by_code[1][4].startswith("'=")


def test_a_long_export_comes_whole(client: Client, stores: Stores, filler: Machine) -> None:
    raise_alarms(stores, filler, *((NOW - 4500 * SECOND + n * SECOND, n % 7) for n in range(4500)))
    rows = table(client.get("/v1/alarms.csv"))[1:]
    assert len(rows) == 4500
    assert [row[2] for row in rows] == sorted({row[2] for row in rows})


def test_exports_are_documented_as_csv(client: Client) -> None:
    paths = client.get("/openapi.json").json()["paths"]
    for path in ("/v1/alarms.csv", "/v1/alarm-metrics/top.csv", "/v1/alarm-metrics/rows.csv"):
        content = paths[path]["get"]["responses"]["200"]["content"]
        assert list(content) == ["text/csv"]
        assert set(paths[path]["get"]["responses"]) == {"200", "401", "403", "404", "422", "429"}
