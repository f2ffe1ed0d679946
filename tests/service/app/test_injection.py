"""Names, codes, texts and reasons are data, wherever they go: into SQL, paths, headers, CSV and sentences."""

import csv
import io
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from urllib.parse import quote

import httpx
import pytest
from sqlalchemy import func, inspect, select

from alarmcast import InProcess
from service.app.service import Service
from service.app.stores import Stores
from service.database.tables import audit_log, events
from service.machines.api import write_cursor
from service.machines.catalogue import CatalogueEntry
from service.machines.events import Cursor
from service.settings import Settings
from tests.service.conftest import FILLER, NOW, enrolled, new_stores, raise_alarms, still_settings
from tests.support.databases import new_postgresql

EVIL = [
    "'; DROP TABLE events; --",
    '" OR "1"="1',
    "%' OR 1=1 /*",
    "../../../../etc/passwd",
    "..%2f..%2fetc%2fpasswd",
    "/etc/passwd",
    "a\r\nSet-Cookie: evil=1",
    "a\nERROR forged",
    'x"; filename="evil.exe',
    "{0.__class__} %(secret)s {{7*7}} ${7*7}",
    "<script>alert(1)</script>",
    "\0",
    "\u202eevil",
    "=cmd|' /C calc'!A0",
]


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def settings(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Settings]:
    """Both databases: each refuses what the other takes."""
    chosen = still_settings(tmp_path_factory.mktemp("injection") / "data", rate_per_second=0)
    if request.param == "sqlite":
        yield chosen
        return
    with new_postgresql(request.getfixturevalue("postgresql")) as url:
        yield chosen.model_copy(update={"database_url": url})


@pytest.fixture(scope="module")
def stores(settings: Settings) -> Iterator[Stores]:
    with new_stores(settings) as opened:
        yield opened


@pytest.fixture(scope="module")
def http(settings: Settings, stores: Stores) -> httpx.Client:
    """A client of one service for all tests: what is refused changes nothing."""
    service = Service(settings, stores)
    filler = enrolled(stores.enrolments, FILLER)
    stores.catalogue.merge([CatalogueEntry(139, "=HYPERLINK(1)", "high", target=True)])
    raise_alarms(stores, filler, *((NOW - timedelta(minutes=n), 139) for n in range(1, 20)))
    key = {"Authorization": f"Bearer {service.key}"}
    return httpx.Client(transport=InProcess(service.app), base_url="http://here", headers=key)


def everything(stores: Stores) -> tuple[set[str], int]:
    with stores.database.read() as connection:
        stored = connection.execute(select(func.count()).select_from(events)).scalar_one()
        return set(inspect(connection).get_table_names()), stored


@pytest.mark.parametrize("words", EVIL)
def test_no_query_parameter_reaches_the_database_as_more_than_a_value(
    http: httpx.Client, stores: Stores, words: str
) -> None:
    before = everything(stores)
    text = quote(words, safe="")
    for path in (
        f"/v1/quarantine?reason={text}",
        f"/v1/quarantine?machine={text}",
        f"/v1/quarantine/replay?reason={text}",
        f"/v1/machines/padova/filler-1/alarms?cursor={text}",
        f"/v1/machines/padova/filler-1/scores?cursor={text}",
        f"/v1/machines/{text}/{text}",
        f"/v1/alarm-metrics?site={text}&machine={text}",
        f"/v1/alarm-metrics?shift={text}",
        f"/v1/models/{text}",
        f"/v1/notifications?site={text}",
    ):
        answer = http.post(path) if "replay" in path else http.get(path)
        assert answer.status_code in (200, 404, 405, 422), f"{path}: {answer.text}"
        if answer.status_code == 200:
            assert "padova" not in answer.text, f"{path} found something by {words!r}"
    assert everything(stores) == before


@pytest.mark.parametrize("words", EVIL)
def test_no_header_of_an_answer_is_written_by_who_asks(http: httpx.Client, words: str) -> None:
    text = quote(words, safe="")
    for path in (
        f"/v1/alarms.csv?site=padova&machine=filler-1&since={text}",
        f"/v1/alarms.csv?site={text}",
        f"/v1/alarm-metrics/rows.csv?shift={text}",
        f"/v1/alarm-metrics/rows.csv?by={text}",
        f"/v1/alarm-metrics/top.csv?site=padova&machine={text}",
    ):
        answer = http.get(path)
        assert answer.status_code in (404, 422), f"{path}: {answer.text[:200]}"
        assert "set-cookie" not in answer.headers
        assert "content-disposition" not in answer.headers


def test_the_name_of_a_download_is_letters_digits_and_underscores(http: httpx.Client) -> None:
    paths = [
        f"/v1/alarm-metrics/{name}.csv?shift=late" for name in ("rows", "top", "floods", "chatter", "standing")
    ]
    paths.append("/v1/alarms.csv?site=padova&machine=filler-1&since=2026-11-16T00:00:00%2B01:00")
    for path in paths:
        answer = http.get(path)
        assert answer.status_code == 200, answer.text
        name = answer.headers["content-disposition"].removeprefix('attachment; filename="').removesuffix('"')
        assert name.replace("_", "").replace("-", "").replace(".", "").isalnum(), name


def test_a_spreadsheet_finds_no_formula_in_an_export(http: httpx.Client) -> None:
    rows = list(csv.DictReader(io.StringIO(http.get("/v1/alarms.csv").text)))
    assert {row["text"] for row in rows} == {"'=HYPERLINK(1)"}


@pytest.mark.parametrize("words", EVIL)
def test_a_file_that_is_uploaded_is_never_written_under_the_name_it_gives(
    http: httpx.Client, settings: Settings, words: str
) -> None:
    answer = http.post(
        f"/v1/machines/padova/filler-1/history?name={quote(words, safe='')}&serial={quote(words, safe='')}",
        content=b"2026-11-10 08:00:00,139,1\nrubbish\n",
        headers={"content-type": "text/csv"},
    )
    assert answer.status_code in (200, 422), answer.text
    folder: Path = settings.data_dir
    left = {path.relative_to(folder).parts[0] for path in folder.rglob("*")}
    assert left <= {
        "alarmcast.sqlite3",
        "alarmcast.sqlite3-wal",
        "alarmcast.sqlite3-shm",
        "alarmcast.lock",
        "weights",
        "uploads",
    }
    assert not any("history-" in path.name for path in folder.rglob("*"))


@pytest.mark.parametrize("words", [words for words in EVIL if words.isprintable() and "\\" not in words])
def test_words_that_may_be_said_are_kept_exactly_as_they_were_said(
    http: httpx.Client, stores: Stores, words: str
) -> None:
    name = f"evil-{EVIL.index(words)}"
    machine = {"site": "padova", "machine": name, "name": words, "time_zone": "UTC"}
    assert http.post("/v1/machines", json=machine).status_code == 202
    assert http.get(f"/v1/machines/padova/{name}").json()["name"] == words.strip()
    assert http.post(f"/v1/machines/padova/{name}/retire", json={"reason": words}).status_code == 200
    with stores.database.read() as connection:
        assert words.strip() in connection.execute(select(audit_log.c.reason)).scalars().all()


@pytest.mark.parametrize("words", ["a\r\nb", "a\nb", "\0", "\x1b[31mred"])
def test_words_that_would_begin_a_line_of_their_own_are_refused(http: httpx.Client, words: str) -> None:
    machine = {"site": "padova", "machine": "evil", "name": words, "time_zone": "UTC"}
    assert http.post("/v1/machines", json=machine).status_code == 422
    assert http.post("/v1/machines/padova/filler-1/retire", json={"reason": words}).status_code == 422
    catalogue = f'code,text,severity,target\n7,"{words}",high,yes\n'
    sent = http.post("/v1/catalogue", content=catalogue.encode(), headers={"content-type": "text/csv"})
    assert sent.status_code == 422


def test_a_number_that_no_column_holds_is_refused_and_not_a_defect(http: httpx.Client) -> None:
    for number in (2**31, 2**63 - 1, 2**63, 10**30):
        for path in (
            f"/v1/shelves?cursor={number}",
            f"/v1/maintenance?cursor={number}",
            f"/v1/machines/padova/filler-1/acknowledgements?cursor={number}",
            f"/v1/machines/padova/filler-1/alarms?code={number}",
            f"/v1/jobs/{number}",
            f"/v1/models/v{number}",
            f"/v1/webhooks/{number}",
        ):
            assert http.get(path).status_code in (404, 422), path
    for number in (2**63, 10**30):
        assert http.get(f"/v1/notifications?cursor={number}").status_code == 422
        assert http.get(f"/v1/quarantine?cursor={number}").status_code == 422
    for place in (Cursor(1, 2**31, 1, 1), Cursor(1, 1, 2**31, 1), Cursor(2**63, 1, 1, 1), Cursor(1, 1, 1, 2**63)):
        answer = http.get(f"/v1/machines/padova/filler-1/alarms?cursor={write_cursor(place)}")
        assert answer.status_code == 422, place
    most = Cursor(2**63 - 1, 2**31 - 1, 2**31 - 1, 2**63 - 1)
    assert http.get(f"/v1/machines/padova/filler-1/alarms?cursor={write_cursor(most)}").status_code == 200
