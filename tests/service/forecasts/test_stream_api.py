"""The stream over a real socket: what is told, to whom, to slow readers, and how it ends."""

import json
import socket
from collections.abc import Iterator
from datetime import timedelta

import httpx
import pytest

from service.app.service import Service
from service.app.stores import Stores
from service.auth.authenticator import LOCAL
from service.forecasts.cache import CachedForecast, ForecastMade
from service.machines.models import Machine
from service.messaging.bus import JobsChanged
from service.messaging.mqtt_client import MqttMessage
from service.settings import Settings
from tests.conftest import wait_until
from tests.service.conftest import EPOCH, FILLER, NOW, Trusted, connect_agent, enrolled, raise_alarms
from tests.support.api_client import BASE, Client, problem
from tests.support.ingest import RecordingLink
from tests.support.streams import Reader, serving
from wire.enums import Role
from wire.forecasts import Forecast
from wire.identity import MachineId
from wire.timestamps import isoformat

CAPPER = MachineId("lyon", "capper")


@pytest.fixture
def address(service: Service) -> Iterator[str]:
    with serving(Trusted(service), service.forecasts.streams) as url:
        yield url


def listening(service: Service, url: str, readers: int = 1) -> Reader:
    reader = Reader(url).start()
    wait_until(lambda: service.forecasts.streams.count == readers, "the stream is open")
    return reader


def deliver(service: Service, *codes: int, first: int = 1, copies: int = 1) -> None:
    """Let the real ingester commit alarms of the filler."""
    at = isoformat(NOW)
    events = ",".join(f'{{"seq":{first + n},"code":{code},"at":"{at}"}}' for n, code in enumerate(codes))
    body = f'{{"epoch":"{EPOCH}","events":[{events}]}}'.encode()
    before = sum(service.ingest.ingester.counts.values())
    for mid in range(copies):
        service.ingest.ingester.on_message(
            MqttMessage(0, mid + 1, 1, "alarmcast/v1/padova/filler-1/events", body, retained=False)
        )
    wait_until(
        lambda: sum(service.ingest.ingester.counts.values()) == before + copies * len(codes), "all is committed"
    )


@pytest.fixture
def ingesting(service: Service) -> Iterator[Service]:
    service.ingest.ingester.start(RecordingLink())  # type: ignore[arg-type]
    yield service
    service.ingest.ingester.stop()


@pytest.mark.usefixtures("champion")
def test_the_present_forecast_comes_first_as_rest_gives_it_and_then_each_new_one(
    service: Service, stores: Stores, filler: Machine, address: str
) -> None:
    connect_agent(stores, filler)
    enrolled(stores.enrolments, CAPPER)
    rest = Client(service).get(f"{BASE}/forecast").json()
    everyone, one = (
        Reader(f"{address}/v1/stream").start(),
        Reader(f"{address}/v1/stream?site=padova&machine=filler-1&kinds=forecast").start(),
    )
    wait_until(lambda: len(everyone.told) == 2 and len(one.told) == 1, "the present forecasts have come")
    assert one.told == [("forecast", rest)]
    assert {(data["site"], data["machine"]) for data in everyone.of("forecast")} == {FILLER, CAPPER}
    raise_alarms(stores, filler, *((NOW - n * timedelta(minutes=1), 26) for n in range(1, 30)))
    service.forecasts.cache.invalidate([FILLER])
    service.forecasts.thread.refresh.run_changed()
    wait_until(lambda: len(everyone.told) == 3 and len(one.told) == 2, "the new forecast has come")
    new = Forecast.model_validate_json(json.dumps(one.told[1][1]))
    assert new.events_seen == 29
    assert everyone.told[2] == one.told[1] == ("forecast", Client(service).get(f"{BASE}/forecast").json())


@pytest.mark.usefixtures("champion", "filler")
def test_alarms_are_told_in_words_after_their_commit_and_once_however_often_they_are_sent(
    ingesting: Service, address: str
) -> None:
    reader = listening(ingesting, f"{address}/v1/stream?kinds=alarm")
    other = listening(ingesting, f"{address}/v1/stream?site=padova&kinds=alarm", readers=2)
    deliver(ingesting, 139, 7)
    deliver(ingesting, 139, 7, 26, copies=2)
    wait_until(lambda: len(reader.told) == len(other.told) == 3, "the alarms have come")
    assert reader.told == other.told
    assert reader.told[0] == (
        "alarm",
        {
            "site": "padova",
            "machine": "filler-1",
            "at": isoformat(NOW),
            "code": 139,
            "text": "Film torn",
            "severity": "high",
        },
    )
    assert [data["code"] for data in reader.of("alarm")] == [139, 7, 26]
    assert not reader.ended


@pytest.mark.usefixtures("filler")
def test_without_a_model_the_stream_waits_for_one(service: Service, address: str) -> None:
    reader = listening(service, f"{address}/v1/stream")
    forecast = Forecast.model_construct(site=FILLER.site, machine=FILLER.machine)
    service.bus.publish(ForecastMade(CachedForecast(FILLER, forecast, b'{"made":"later"}'), leads=True))
    wait_until(lambda: reader.told, "the forecast has come")
    assert reader.told == [("forecast", {"made": "later"})]


@pytest.mark.usefixtures("filler")
def test_who_reads_too_slowly_is_told_how_much_was_missed_and_hears_the_newest(
    ingesting: Service, address: str
) -> None:
    host, port = address.removeprefix("http://").split(":")
    with socket.socket() as slow:
        slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        slow.connect((host, int(port)))
        slow.sendall(f"GET /v1/stream?kinds=alarm HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
        wait_until(lambda: ingesting.forecasts.streams.count == 1, "the stream is open")
        for batch in range(60):
            deliver(ingesting, *range(500), first=batch * 500 + 1)
        deliver(ingesting, 77_777, first=99_999)
        slow.settimeout(30)
        heard_of = b""
        while b"77777" not in heard_of:
            heard_of += slow.recv(65536)
    missed = sum(
        json.loads(line.removeprefix(b"data: "))["count"]
        for line in heard_of.split(b"\n")
        if line.startswith(b'data: {"count"')
    )
    told = heard_of.count(b"event: alarm")
    assert missed > 0
    assert told + missed == 60 * 500 + 1
    wait_until(lambda: ingesting.forecasts.streams.count == 0, "the place is free again")


@pytest.mark.usefixtures("filler")
def test_a_silent_stream_says_that_it_is_still_there(service: Service, address: str) -> None:
    service.forecasts.streams.ping_interval_s = 0.02
    reader = listening(service, f"{address}/v1/stream")
    wait_until(lambda: reader.comments >= 2, "two pings have come")
    assert reader.told == []


@pytest.mark.usefixtures("filler")
def test_streams_end_at_once_when_the_server_stops(service: Service) -> None:
    with serving(Trusted(service), service.forecasts.streams) as url:
        readers = [listening(service, f"{url}/v1/stream", readers=n + 1) for n in range(3)]
        job = Reader(f"{url}/v1/jobs/1/events").start()
        wait_until(lambda: job.told, "the job is told")
    # The server would have waited a minute for them.
    wait_until(lambda: all(one.ended for one in [*readers, job]), "all have ended in order")
    assert service.forecasts.streams.count == 0


@pytest.mark.usefixtures("filler")
def test_a_reader_that_leaves_gives_its_place_back(settings: Settings, stores: Stores) -> None:
    service = Service(settings.model_copy(update={"stream_limit": 1}), stores)
    with serving(Trusted(service), service.forecasts.streams) as url:
        with httpx.stream("GET", f"{url}/v1/stream", timeout=10) as answer:
            pieces = answer.iter_bytes()  # kept, because httpx hangs up when it goes
            assert next(pieces)
            refused = httpx.get(f"{url}/v1/stream", timeout=10)
            assert "streams are open already" in problem(refused, 503)["detail"]
            assert refused.headers["retry-after"]
        wait_until(lambda: service.forecasts.streams.count == 0, "the place is free again")


@pytest.mark.usefixtures("filler")
def test_one_key_has_so_many_streams_those_of_jobs_included_and_others_have_theirs(
    settings: Settings, stores: Stores
) -> None:
    service = Service(settings.model_copy(update={"streams_per_user": 2}), stores)
    people = service.auth.users
    made = [people.add_key(name, Role.VIEWER, None, ttl=None, by=LOCAL) for name in ("busy", "calm")]
    busy, calm = ({"Authorization": f"Bearer {one.token}"} for one in made)
    with serving(service.app, service.forecasts.streams) as url:
        with (
            httpx.stream("GET", f"{url}/v1/stream", headers=busy, timeout=10) as fleet,
            httpx.stream("GET", f"{url}/v1/jobs/1/events", headers=busy, timeout=10) as job,
        ):
            assert (fleet.status_code, job.status_code) == (200, 200)
            for path in ("/v1/stream", "/v1/jobs/1/events"):
                refused = httpx.get(f"{url}{path}", headers=busy, timeout=10)
                assert "You have 2 streams open" in problem(refused, 429)["detail"]
                assert refused.headers["retry-after"] == "30"
            with httpx.stream("GET", f"{url}/v1/jobs/1/events", headers=calm, timeout=10) as other:
                assert other.status_code == 200
        wait_until(lambda: service.forecasts.streams.count == 0, "all places are free again")


def test_a_job_that_changes_is_told_to_all_who_follow_it_until_it_has_ended(
    service: Service, stores: Stores, filler: Machine, address: str
) -> None:
    readers = [Reader(f"{address}/v1/jobs/1/events").start() for _ in range(3)]
    wait_until(lambda: all(one.told for one in readers), "the job is told")
    stores.enrolments.retire(filler, who="test", at=NOW, plant_at=NOW, reason=None)
    service.bus.publish(JobsChanged())
    wait_until(lambda: all(one.ended for one in readers), "all have ended")
    assert [[job["state"] for job in one.of("job")] for one in readers] == [["collecting", "cancelled"]] * 3
    wait_until(lambda: service.forecasts.streams.count == 0, "all places are free again")


@pytest.mark.parametrize(
    ("query", "status"),
    [
        ("machine=filler-1", 422),
        ("kinds=gossip", 422),
        ("kinds=", 422),
        ("kinds=forecast,", 422),
        ("site=No", 422),
        ("site=nowhere", 404),
        ("site=padova&machine=none", 404),
    ],
)
def test_a_wish_that_cannot_be_met_is_a_problem_and_opens_no_stream(
    shared_service: Service, query: str, status: int
) -> None:
    problem(Client(shared_service).request("GET", f"/v1/stream?{query}"), status)
    assert shared_service.forecasts.streams.count == 0


def test_a_retired_machine_is_gone(service: Service, stores: Stores, filler: Machine) -> None:
    stores.enrolments.retire(filler, who="test", at=NOW, plant_at=NOW, reason=None)
    problem(Client(service).request("GET", "/v1/stream?site=padova&machine=filler-1"), 410)
