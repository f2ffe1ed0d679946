"""The client as a program uses it: typed answers, problems as errors, uploads, pages, retries."""

import asyncio
import gzip
import inspect
from contextlib import aclosing, closing
from datetime import UTC, datetime, timedelta
from io import BytesIO
from pathlib import Path
from typing import Any

import httpx
import pytest

import alarmcast
from alarmcast import (
    ApiError,
    AsyncClient,
    Client,
    Conflict,
    InvalidResponse,
    NotFound,
    Rejected,
    RetryPolicy,
    Unavailable,
    Unreachable,
)
from alarmcast.errors import error_from_response
from alarmcast.retry import RetryState
from service.app.stores import Stores
from service.machines.models import Machine
from tests.conftest import free_port
from tests.service.conftest import NOW, raise_alarms
from wire.enums import JobState, StreamKind
from wire.forecasts import Forecast
from wire.rest.jobs import JobView
from wire.rest.stream import RaisedAlarm

HEADER = "timestamp,alarm,serial\n"


def answering(*answers: httpx.Response | Exception) -> tuple[httpx.MockTransport, list[httpx.Request]]:
    """Return a network that gives these answers, the last one for ever, and what it was asked."""
    asked: list[httpx.Request] = []

    def answer(request: httpx.Request) -> httpx.Response:
        asked.append(request)
        told = answers[min(len(asked), len(answers)) - 1]
        if isinstance(told, Exception):
            raise told
        return httpx.Response(told.status_code, headers=told.headers, content=told.content)

    return httpx.MockTransport(answer), asked


ALIVE = httpx.Response(200, json={"status": "alive"})
AWAY = httpx.Response(503, json={}, headers={"Retry-After": "7"})
AT_ONCE = RetryPolicy(retries=2, longest_wait=0.0)


def test_what_is_exported_is_what_there_is() -> None:
    public = {name for name, value in vars(alarmcast).items() if name[0] != "_" and not inspect.ismodule(value)}
    assert public == set(alarmcast.__all__)


def test_both_clients_give_the_same_typed_answers(
    client: Client, async_client: AsyncClient, stores: Stores, filler: Machine
) -> None:
    raise_alarms(stores, filler, *((NOW - timedelta(minutes=n), 4) for n in range(1, 26)))

    async def ask() -> tuple[object, ...]:
        alarms = [alarm async for alarm in async_client.machines.alarms(filler.id, limit=10)]
        return await async_client.machines.get(filler.id), alarms, await async_client.jobs.get(1)

    machine, alarms, job = (
        client.machines.get(str(filler.id)),
        client.machines.alarms(filler.id),
        client.jobs.get(1),
    )
    assert asyncio.run(ask()) == (machine, list(alarms), job)
    assert isinstance(job, JobView)
    assert machine.time_zone == "Europe/Rome"


def test_a_problem_is_an_error_that_can_be_read(client: Client, async_client: AsyncClient) -> None:
    with pytest.raises(NotFound, match="alarmcast admin enrol padova/none") as caught:
        client.machines.get("padova/none")
    assert (caught.value.status, caught.value.title, caught.value.errors) == (404, "Not found", [])
    with pytest.raises(Rejected) as rejected:
        client.jobs.list(limit=0)
    assert [error.pointer for error in rejected.value.errors] == ["query/limit"]
    with pytest.raises(NotFound):
        asyncio.run(async_client.machines.get("padova/none"))


@pytest.mark.usefixtures("filler")
def test_without_a_model_it_says_when_to_come_back(client: Client) -> None:
    with pytest.raises(Unavailable) as caught:
        client.forecasts.get("padova/filler-1")
    assert caught.value.retry_after == 60


def test_what_cannot_even_be_written_is_refused_in_the_services_words(client: Client) -> None:
    for wrong in ("padova", "Padova/x", "a/b/c"):
        with pytest.raises(Rejected, match="does not name a machine"):
            client.machines.get(wrong)
    with pytest.raises(Rejected, match="time zone"):
        client.forecasts.get("padova/filler-1", at=datetime(2026, 11, 16))  # noqa: DTZ001
    with pytest.raises(Rejected) as here:
        client.models.promote("v1", reason="")
    there = client.http.post("/v1/models/v1/promote", json={"reason": ""}).json()
    assert (here.value.status, here.value.title, here.value.detail) == (
        there["status"],
        there["title"],
        there["detail"],
    )
    assert [error.model_dump() for error in here.value.errors] == there["errors"]


def test_an_unready_service_answers_and_is_no_error(client: Client) -> None:
    readiness = client.health.ready()
    assert not readiness.ready
    assert "broker" in readiness.errors


def test_history_is_streamed_from_a_path_a_file_or_memory_with_progress(
    client: Client, async_client: AsyncClient, filler: Machine, tmp_path: Path
) -> None:
    rows = [f"2026-11-1{day} 08:{minute:02}:00,5,1\n" for day in range(5) for minute in range(60)]
    body = (HEADER + "".join(rows)).encode() + b"\n" * 3_000_000
    log, sent = tmp_path / "filler.csv", list[int]()
    log.write_bytes(body)
    assert client.enrolment.load_history(filler.id, log, on_progress=sent.append).stored == len(rows)
    assert len(sent) == 3
    assert (sent[-1], sent) == (len(body), sorted(sent))
    zipped = BytesIO(gzip.compress(body))
    assert client.enrolment.load_history(filler.id, zipped).duplicates == len(rows)
    again: list[int] = []
    loaded = asyncio.run(
        async_client.enrolment.load_history(filler.id, body, serial="1", on_progress=again.append)
    )
    assert (loaded.duplicates, again) == (len(rows), sent)


def test_a_refused_row_names_the_file_it_came_from(client: Client, filler: Machine, tmp_path: Path) -> None:
    log = tmp_path / "night.csv"
    log.write_text(HEADER + "rubbish\n2026-11-10 08:00:00,5,1\n")
    client.enrolment.load_history(filler.id, log)
    (item,) = client.quarantine.items()
    assert "night.csv" in item.topic


def test_a_job_is_followed_until_it_has_ended(client: Client, async_client: AsyncClient, filler: Machine) -> None:
    client.enrolment.retire(filler.id, reason="sold")
    assert [job.state for job in client.jobs.stream(1)] == [JobState.CANCELLED]

    async def follow() -> list[JobState]:
        async with aclosing(async_client.jobs.stream(1)) as jobs:
            return [job.state async for job in jobs]

    assert asyncio.run(follow()) == [JobState.CANCELLED]
    with pytest.raises(NotFound):
        list(client.jobs.stream(2))


@pytest.mark.usefixtures("champion")
def test_over_a_socket_calls_uploads_and_the_stream_work(address: str, filler: Machine) -> None:
    with Client(address, timeout=60) as client:
        assert client.health.live().status == "alive"
        with closing(client.stream.events(site="padova")) as stream:
            told = next(stream)
        assert isinstance(told, Forecast)
        assert (told.machine, told.model_version) == ("filler-1", "v1")
        loaded = client.enrolment.load_history(filler.id, (HEADER + "2026-11-10 08:00:00,5,1\n").encode())
        assert loaded.stored == 1
        with pytest.raises(Conflict):
            client.enrolment.enrol(filler.id, name="Another")


def test_a_closed_port_is_unreachable() -> None:
    with (
        pytest.raises(Unreachable, match="does not answer") as caught,
        Client(f"http://127.0.0.1:{free_port()}") as nobody,
    ):
        nobody.health.live()
    assert isinstance(caught.value.__cause__, httpx.ConnectError)


def test_the_key_and_own_headers_go_with_every_call() -> None:
    network, asked = answering(ALIVE)
    with Client("http://plant", key="k-1", headers={"X-Line": "7"}, transport=network) as client:
        client.health.live()
    (request,) = asked
    assert (request.headers["authorization"], request.headers["x-line"]) == ("Bearer k-1", "7")


def test_parameters_are_written_as_the_api_reads_them() -> None:
    page = httpx.Response(200, json={"alarms": [], "next": None})
    network, asked = answering(page)
    rome = datetime(2026, 11, 16, 9, tzinfo=UTC) + timedelta(milliseconds=5)
    with Client("http://plant/behind/a/proxy", transport=network) as client:
        client.machines.alarms_page("padova/filler-1", since=rome, flagged=True)
        with pytest.raises(InvalidResponse):
            client.models.get("v1/../x")
    assert asked[0].url.path == "/behind/a/proxy/v1/machines/padova/filler-1/alarms"
    assert dict(asked[0].url.params) == {"limit": "100", "since": "2026-11-16T09:00:00.005Z", "flagged": "true"}
    assert asked[1].url.raw_path == b"/behind/a/proxy/v1/models/v1%2F..%2Fx"


def test_what_cannot_even_be_asked_is_refused_in_the_words_of_the_api() -> None:
    network, asked = answering()
    with Client("http://plant", transport=network) as client, pytest.raises(Rejected) as refused:
        client.users.add("Maria Rossi")
    assert str(refused.value).startswith("body/name: A name has 1 to 63 lower-case letters, digits,")
    assert asked == []


@pytest.mark.parametrize("failure", [AWAY, httpx.ConnectError("refused")])
def test_a_question_is_asked_again_as_often_as_wanted(failure: httpx.Response | Exception) -> None:
    network, asked = answering(failure, failure, ALIVE)
    with Client("http://plant", patience=AT_ONCE, transport=network) as client:
        assert client.health.live().status == "alive"
    assert len(asked) == 3

    async def ask() -> None:
        network, asked = answering(failure, failure, failure, ALIVE)
        async with AsyncClient("http://plant", patience=AT_ONCE, transport=network) as client:
            with pytest.raises((Unavailable, Unreachable)):
                await client.health.live()
        assert len(asked) == 3

    asyncio.run(ask())


def test_an_order_is_never_given_twice_and_without_patience_nothing_is() -> None:
    network, asked = answering(AWAY)
    with Client("http://plant", patience=AT_ONCE, transport=network) as client, pytest.raises(Unavailable):
        client.models.roll_back(reason="worse")
    assert len(asked) == 1
    with Client("http://plant", transport=network) as client, pytest.raises(Unavailable):
        client.health.live()
    assert len(asked) == 2


def test_the_services_own_word_on_when_to_come_back_is_kept_within_bounds() -> None:
    request = httpx.Request("GET", "http://plant/v1/forecasts")
    away = error_from_response(httpx.Response(503, headers={"Retry-After": "7"}, request=request))
    assert isinstance(away, Unavailable)
    assert RetryState(RetryPolicy(retries=1), repeatable=True).next_delay(away) == 7
    assert RetryState(RetryPolicy(retries=1, longest_wait=5), repeatable=True).next_delay(away) == 5
    gone, tries = Unreachable("nobody"), RetryState(RetryPolicy(retries=3), repeatable=True)
    assert [tries.next_delay(gone) for _ in range(3)] == [1, 2, 4]
    with pytest.raises(Unreachable):
        tries.next_delay(gone)


def test_what_answers_in_other_words_is_told_apart() -> None:
    proxy, _ = answering(httpx.Response(502, text="<h1>Bad gateway</h1>"))
    with Client("http://plant", transport=proxy) as client, pytest.raises(ApiError) as caught:
        client.health.live()
    assert (caught.value.status, str(caught.value)) == (502, "The service answered 502.")
    other, _ = answering(httpx.Response(200, text="<h1>Welcome</h1>"))
    with Client("http://plant", transport=other) as client, pytest.raises(InvalidResponse, match="GET /livez"):
        client.health.live()


def test_fields_and_events_of_a_newer_service_are_passed_over() -> None:
    news: Any = {"site": "padova", "machine": "filler-1", "at": "2026-11-16T08:00:00Z", "code": 139}
    news |= {"text": "Film torn", "severity": "high", "colour": "red"}
    body = f"event: weather\ndata: rain\n\nevent: alarm\ndata: {httpx.Response(200, json=news).text}\n\n"
    network, asked = answering(httpx.Response(200, text=body))
    with Client("http://plant", transport=network) as client:
        stream = client.stream.events(site="padova", kinds=[StreamKind.ALARM])
        told = next(stream)
        with pytest.raises(Unreachable, match="stream of http://plant ended"):
            next(stream)
    assert isinstance(told, RaisedAlarm)
    assert told.code == 139
    assert dict(asked[0].url.params) == {"site": "padova", "kinds": "alarm"}


def test_an_http_client_of_ones_own_is_used_and_stays_open() -> None:
    network, _ = answering(ALIVE)
    with httpx.Client(base_url="http://plant", transport=network) as own:
        with Client(http=own) as client:
            client.health.live()
        assert not own.is_closed
        client.health.live()


def test_long_answers_may_take_longer_than_others_and_never_less() -> None:
    network, asked = answering(httpx.Response(422, json={}))
    for timeout, read in ((5.0, 600.0), (1000.0, 1000.0)):
        with Client("http://plant", timeout=timeout, transport=network) as client, pytest.raises(Rejected):
            client.enrolment.load_history("padova/filler-1", b"")
        assert asked[-1].extensions["timeout"] == {
            "connect": timeout, "read": read, "write": timeout, "pool": timeout,
        }  # fmt: skip
