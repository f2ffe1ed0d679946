"""The HTTP endpoint: an alarm is answered once it is in the spool."""

import http.client
import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from edge_agent.errors import ConfigRejected
from edge_agent.settings import SourceKind
from edge_agent.sources import Context
from edge_agent.sources.http import build
from tests.conftest import free_port, wait_until
from tests.support.source_run import SourceRun, source_settings
from wire.clock import PlantClock

TOKEN = "correct horse"  # noqa: S105


class Endpoint:
    """A run of the source and a client for it."""

    def __init__(self, folder: Path) -> None:
        self.port, self._folder = free_port(), folder
        self.start()

    def start(self, token: str = TOKEN) -> None:
        settings = source_settings(SourceKind.HTTP, {"listen": f"127.0.0.1:{self.port}"}, source_password=token)
        self.run = SourceRun(self._folder, settings)
        wait_until(self._listens, "the endpoint listens")

    def _listens(self) -> bool:
        try:
            return self.post(None, token="")[0] == 401
        except OSError:
            return False

    def post(self, body: Any, token: str = TOKEN, key: str | None = None) -> tuple[int, dict[str, Any]]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        payload = body if isinstance(body, bytes) else json.dumps(body).encode()
        headers = {"Authorization": f"Bearer {token}"} | ({"Idempotency-Key": key} if key is not None else {})
        with closing(connection):  # also if the agent refuses before all is sent
            connection.request("POST", "/", payload, headers)
            response = connection.getresponse()
            return response.status, json.loads(response.read())


@pytest.fixture
def endpoint(tmp_path: Path) -> Iterator[Endpoint]:
    made = Endpoint(tmp_path)
    yield made
    made.run.close()


def test_alarm_is_in_the_spool_when_it_is_answered(endpoint: Endpoint) -> None:
    assert endpoint.post({"alarm": 139}) == (200, {"stored": 1})
    assert endpoint.run.raised == [139]
    body = [{"alarm": "140", "timestamp": "2026-11-16T08:00:00Z"}, {"alarm": 139, "state": "cleared"}]
    assert endpoint.post(body) == (200, {"stored": 2})
    assert (endpoint.run.raised, endpoint.run.cleared) == ([139, 140], [139])
    assert endpoint.run.events[1].at.isoformat() == "2026-11-16T08:00:00+00:00"


def test_name_text_and_severity_are_stored(endpoint: Endpoint) -> None:
    assert endpoint.post({"alarm": "F139", "text": "Door open", "severity": "high"})[0] == 200
    (code,) = endpoint.run.spool.codes()
    assert (code.name, code.text, code.severity) == ("F139", "Door open", "high")
    assert endpoint.run.raised == [code.code]


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"{", 400),
        ([1], 400),
        ({"code": 1}, 422),
        ([{"alarm": 1}, {"alarm": 2, "timestamp": "yesterday"}], 422),
        ([{"alarm": 1}] * 1001, 400),
        (b" " * (2 << 20), 413),
    ],
)
def test_request_that_cannot_be_read_is_refused_whole(endpoint: Endpoint, body: Any, status: int) -> None:
    try:
        assert endpoint.post(body)[0] == status
    except (BrokenPipeError, ConnectionResetError):
        assert status == 413
    assert endpoint.run.raised == []


def test_wrong_token_is_refused_and_a_new_one_replaces_the_old(endpoint: Endpoint) -> None:
    assert endpoint.post({"alarm": 139}, token="wrong")[0] == 401  # noqa: S106
    endpoint.run.close()
    endpoint.start(token="new token")  # noqa: S106
    assert endpoint.post({"alarm": 139})[0] == 401
    assert endpoint.post({"alarm": 140}, token="new token")[0] == 200  # noqa: S106
    assert endpoint.run.raised == [140]


def test_request_with_the_id_of_a_stored_one_is_not_stored_again(endpoint: Endpoint) -> None:
    assert endpoint.post({"alarm": "x" * 1000}, key="a")[0] == 422
    assert endpoint.post([{"alarm": 1}, {"alarm": 2}], key="a") == (200, {"stored": 2})
    endpoint.run.close()
    endpoint.start()
    assert endpoint.post([{"alarm": 1}, {"alarm": 2}], key="a") == (200, {"stored": 0})
    assert endpoint.post({"alarm": 3}, key="a")[0] == 422
    assert endpoint.post({"alarm": 3}, key="b") == (200, {"stored": 1})
    assert endpoint.run.raised == [1, 2, 3]
    assert endpoint.post({"alarm": 3}, key="b" * 201)[0] == 400


@pytest.mark.parametrize(
    ("options", "sentence"), [({}, "needs source.password"), ({"token": False, "listen": "0.0.0.0:1"}, "loopback")]
)
def test_open_endpoint_is_refused(options: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ConfigRejected, match=sentence):
        build(options, Context(PlantClock()))


def test_doctor_reports_an_address_that_is_in_use(endpoint: Endpoint) -> None:
    context = Context(PlantClock(), password=TOKEN)
    (used,) = build({"listen": f"127.0.0.1:{endpoint.port}"}, context).check()
    (free,) = build({"listen": f"127.0.0.1:{free_port()}"}, context).check()
    assert (used.ok, free.ok) == (None, True)
