"""The pages' door at a real service, knocked at by programs: what a browser would not do is done here."""

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.conftest import Mosquitto
from tests.system.conftest import Plant
from wire.rest.people import SESSION_COOKIE

STALE = {SESSION_COOKIE: "acs_000000000000_forged"}


@pytest.fixture(scope="module")
def plant(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Plant]:
    """A service that believes what is forwarded, lets strangers ask little, and has no broker to talk to."""
    folder: Path = tmp_path_factory.mktemp("door")
    limits = {"ALARMCAST_RATE_PER_SECOND": "1", "ALARMCAST_RATE_BURST": "100"}
    plant = Plant(folder, Mosquitto(folder), environment={"ALARMCAST_TRUSTED_PROXIES": "127.0.0.1", **limits})
    plant.start_service()
    yield plant
    plant.service.kill()


def knock(plant: Plant, path: str, origin: str, **more: dict[str, str]) -> httpx.Response:
    """Ask once, as a proxy does for somebody at another address."""
    return httpx.get(f"{plant.address}{path}", headers={"X-Forwarded-For": origin}, **more)  # type: ignore[arg-type]


def test_who_knocks_too_often_with_a_session_that_is_over_is_told_to_wait_and_nobody_else_is(plant: Plant) -> None:
    answers = [knock(plant, "/", "203.0.113.7", cookies=STALE) for _ in range(12)]
    assert (answers[0].status_code, answers[-1].status_code) == (303, 429)
    assert answers[-1].text == "You ask more often than this service allows; wait and go on more slowly."
    assert int(answers[-1].headers["Retry-After"]) > 0
    assert knock(plant, "/", "203.0.113.8", cookies=STALE).status_code == 303
    assert knock(plant, "/livez", "127.0.0.1").status_code == 200
    assert "Traceback" not in plant.service.words()
