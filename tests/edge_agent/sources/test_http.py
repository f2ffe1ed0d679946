"""The HTTP endpoint: an alarm is answered once it is in the spool."""

import http.client
import json
from collections.abc import Iterator
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
        self.port = free_port()
        settings = source_settings(SourceKind.HTTP, {"listen": f"127.0.0.1:{self.port}"}, source_password=TOKEN)
        self.run = SourceRun(folder, settings)
        wait_until(self._listens, "the endpoint listens")

    def _listens(self) -> bool:
        try:
            return self.post(None, token="")[0] == 401
        except OSError:
            return False

    def post(self, body: Any, token: str = TOKEN) -> tuple[int, dict[str, Any]]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        payload = body if isinstance(body, bytes) else json.dumps(body).encode()
        connection.request("POST", "/", payload, {"Authorization": f"Bearer {token}"})
        response = connection.getresponse()
        found = response.status, json.loads(response.read())
        connection.close()
        return found


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


def test_wrong_token_is_refused(endpoint: Endpoint) -> None:
    assert endpoint.post({"alarm": 139}, token="wrong")[0] == 401  # noqa: S106
    assert endpoint.run.raised == []


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
