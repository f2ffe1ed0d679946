"""Histories over REST: previews, columns, code maps, and what the agent's configuration gets from them."""

import gzip
import tomllib
from typing import Any

import pytest
from sqlalchemy import select

from alarmcast import Rejected, TooLarge
from edge_agent.sources.columns import parse_columns
from service.app.service import Service
from service.app.stores import Stores
from service.database.tables import events, machines, quarantine
from service.settings import Settings
from tests.service.conftest import FILLER
from tests.support.api_client import BASE, Client, problem
from wire.rest.histories import HistoryColumns

GERMAN = HistoryColumns(
    delimiter=";",
    encoding="cp1252",
    date="Datum",
    time="Zeit",
    time_format="%d.%m.%Y %H:%M",
    code="Störung",
    state="Status",
    raised="K, KQ",
    cleared="G",
    serial_column="Anlage",
)
LOG = (
    "Datum;Zeit;Störung;Status;Anlage\n10.11.2026;09:00;Tür offen;K;4711\n"
    "10.11.2026;09:01;Tür offen;G;4711\n10.11.2026;10:00;139;KQ;4712\n"
).encode("cp1252")


@pytest.fixture
def client(service: Service) -> Client:
    return Client(service)


def nothing_is_stored(stores: Stores) -> bool:
    with stores.database.read() as connection:
        return all(connection.execute(select(table)).first() is None for table in (events, machines, quarantine))


@pytest.mark.parametrize("file", [LOG, gzip.compress(LOG)])
def test_a_preview_needs_no_machine_and_stores_nothing(
    client: Client, stores: Stores, settings: Settings, file: bytes
) -> None:
    shown = client.enrolment.preview_history(
        "padova/new", file, name="log.csv", serial="4711", time_zone="Europe/Rome", columns=GERMAN
    )
    assert (shown.problem, shown.rows, shown.cleared, shown.lines) == (None, 1, 1, 4)
    assert [row.model_dump(mode="json") for row in shown.first_rows[:1]] == [
        {
            "line": 2,
            "text": "10.11.2026;09:00;Tür offen;K;4711",
            "at": "2026-11-10T08:00:00.000Z",
            "code": shown.codes[0].code,
            "name": "Tür offen",
            "serial": "4711",
            "meaning": "raised",
        }
    ]
    several = client.enrolment.preview_history("padova/new", file, name="log.csv", columns=GERMAN)
    assert several.field == "serial"
    assert [(one.serial, one.rows) for one in several.serials] == [("4711", 2), ("4712", 1)]
    assert nothing_is_stored(stores)
    assert list(settings.data_dir.glob("uploads/*")) == []


@pytest.mark.usefixtures("filler")
def test_times_of_a_preview_are_in_the_zone_of_an_enrolled_machine(client: Client) -> None:
    shown = client.enrolment.preview_history(FILLER, b"2026-11-10 09:00:00,5,1\n")
    assert shown.model_dump(mode="json")["first_at"] == "2026-11-10T08:00:00.000Z"


@pytest.mark.usefixtures("filler")
def test_the_agent_gets_the_columns_of_the_history(client: Client) -> None:
    loaded = client.enrolment.load_history(
        FILLER, LOG, serial="4711", columns=GERMAN, code_map="name,code\nTür offen,7\n".encode()
    )
    assert loaded.stored == 1
    assert loaded.edge_toml_source
    toml = tomllib.loads(f"[source]\n{loaded.edge_toml_source}")
    assert (toml["source"]["serial"], toml["source"]["codes"]) == ("4711", "codes.csv")
    read = parse_columns(toml["tail"])
    assert (read.delimiter, read.raised, read.serial, read.code) == (";", ("K", "KQ"), "Anlage", "Störung")
    assert [one.code for one in client.machines.alarms(FILLER)] == [7]


@pytest.mark.usefixtures("filler")
def test_a_preset_is_one_line_of_the_agents_configuration(client: Client) -> None:
    rows = b"DisplayPath,EventTime,EventState,Priority\nDoor,2026-11-10 09:00:00,Active,High\n"
    loaded = client.enrolment.load_history(FILLER, rows, columns=HistoryColumns(preset="ignition"))
    assert loaded.edge_toml_source
    assert tomllib.loads(loaded.edge_toml_source)["tail"] == {"preset": "ignition"}


@pytest.mark.usefixtures("filler")
def test_the_usual_columns_with_another_delimiter_still_name_their_machine(client: Client) -> None:
    rows = b"timestamp;alarm;serial\n2026-11-10 09:00:00;F5;1\n2026-11-10 09:00:00;F5;2\n"
    with pytest.raises(Rejected, match=r"Its serials: 1 \(1 row\), 2 \(1 row\)"):
        client.enrolment.load_history(FILLER, rows, columns=HistoryColumns(delimiter=";"))
    mapped = client.enrolment.preview_history(
        FILLER, rows.replace(b";", b","), serial="2", code_map=b"name,code\nF5,5\n"
    )
    assert [(one.code, one.name, one.rows) for one in mapped.codes] == [(5, "F5", 1)]


@pytest.mark.parametrize(
    ("query", "field", "words"),
    [
        ({"preset": "scada"}, "preset", "wincc"),
        ({"delimiter": "xx"}, "delimiter", "at most 1 character"),
        ({"encoding": "klingon"}, "encoding", "there is no encoding klingon"),
        ({"encoding": "utf-16"}, "encoding", "let the file be written as utf-8"),
        ({"time_format": "DD.MM.YYYY"}, "time_format", "such as %d.%m.%Y"),
        ({"time_zone": "Mars"}, "time_zone", "is no time zone"),
        ({"code_map_bytes": "9"}, "code_map_bytes", "The code map is wrong: its first line must name"),
    ],
)
@pytest.mark.parametrize("path", ["history", "history/preview"])
@pytest.mark.usefixtures("filler")
def test_a_wrong_parameter_is_named(
    client: Client, stores: Stores, path: str, query: dict[str, Any], field: str, words: str
) -> None:
    answer = problem(client.request("POST", f"{BASE}/{path}", params=query, content=LOG), 422)
    assert answer["errors"][0]["pointer"] == f"query/{field}"
    assert words in answer["errors"][0]["detail"]
    with stores.database.read() as connection:
        assert connection.execute(select(events)).first() is None


def test_a_preview_of_a_file_that_is_too_large_is_refused(settings: Settings, stores: Stores) -> None:
    small = Client(Service(settings.model_copy(update={"history_max_mb": 1}), stores))
    with pytest.raises(TooLarge, match="load it in parts"):
        small.enrolment.preview_history(FILLER, b"x" * 1_000_001)
