"""A forecast whose bytes are ready: the same answer by a shorter way, to the same people."""

import httpx
import pytest

from alarmcast import InProcess
from service.app.service import Service
from service.forecasts.api import PATH
from service.machines.models import Machine
from tests.service.conftest import FILLER

FORECAST = PATH.format(site=FILLER.site, machine=FILLER.machine)
pytestmark = pytest.mark.usefixtures("champion", "filler")


def asking(service: Service, key: str | None) -> httpx.Client:
    headers = {} if key is None else {"Authorization": f"Bearer {key}"}
    return httpx.Client(base_url="http://here", headers=headers, transport=InProcess(service.app))


def test_the_second_answer_is_the_first_one_with_the_same_headers(service: Service) -> None:
    client = asking(service, service.key)
    assert service.forecasts.cache.get_fresh(FILLER) is None
    first = client.get(FORECAST)
    kept = service.forecasts.cache.get_fresh(FILLER)
    assert kept is not None
    second = client.get(FORECAST)
    assert first.content == second.content == kept.encoded
    assert dict(first.headers) == dict(second.headers)


def test_what_is_ready_is_ready_for_those_who_may_see_it(service: Service) -> None:
    asking(service, service.key).get(FORECAST)
    assert asking(service, None).get(FORECAST).status_code == httpx.codes.UNAUTHORIZED
    assert asking(service, "ack_0123456789ab_wrong").get(FORECAST).status_code == httpx.codes.UNAUTHORIZED


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", f"{FORECAST}?at=2026-11-16T06:00:00Z", 200),
        ("GET", f"{FORECAST}/", 404),
        ("GET", FORECAST.replace("padova", "Padova"), 422),
        ("GET", FORECAST.replace("filler-1", "filler-9"), 404),
        ("POST", FORECAST, 405),
    ],
)
def test_everything_else_goes_the_usual_way(service: Service, method: str, path: str, status: int) -> None:
    client = asking(service, service.key)
    client.get(FORECAST)
    assert client.request(method, path).status_code == status


def test_a_retired_machine_has_none_that_is_ready(service: Service, filler: Machine) -> None:
    client = asking(service, service.key)
    client.get(FORECAST)
    service.learning.enrolment.retire(filler.id, who="test", reason=None)
    service.forecasts.cache.invalidate([filler.id])
    assert client.get(FORECAST).status_code == httpx.codes.GONE
