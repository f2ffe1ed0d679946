"""A service whose store was copied to PostgreSQL answers as it did on SQLite, and works on."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

import numpy as np
import pytest

from service.app.service import Service
from service.app.stores import open_stores
from service.database.copy import copy_database
from service.database.copy_endpoint import open_endpoint
from service.database.engine import Database
from service.forecasts.version import StoredForecast
from service.machines.catalogue import CatalogueEntry
from service.settings import Settings
from tests.service.conftest import FILLER, NOW, connect_agent, enrolled, raise_alarms, small_model
from tests.support.api_client import BASE, Client
from wire.timestamps import isoformat

HOUR = timedelta(hours=1)
QUESTIONS = [
    "/v1/machines",
    "/v1/catalogue",
    f"{BASE}/alarms",
    f"{BASE}/forecast?at={isoformat(NOW)}",
    f"{BASE}/scores",
    f"/v1/scoreboard?since={isoformat(NOW - 72 * HOUR)}&until={isoformat(NOW)}",
    "/v1/models",
    "/v1/models/v1",
    "/v1/jobs",
    "/v1/audit",
    "/v1/users",
]


@pytest.fixture
def moved(settings: Settings, postgresql: str) -> Settings:
    """The settings of a service that goes on in an empty PostgreSQL, in the same folder."""
    database = Database(postgresql)
    with database.write() as connection:
        connection.exec_driver_sql("DROP SCHEMA public CASCADE")
        connection.exec_driver_sql("CREATE SCHEMA public")
    database.close()
    return settings.model_copy(update={"database_url": postgresql})


@contextmanager
def serving(settings: Settings) -> Iterator[Client]:
    with open_stores(settings) as stores:
        yield Client(Service(settings, stores))


def lived(settings: Settings) -> None:
    """Let a machine have alarms, a model, and forecasts that were scored."""
    with open_stores(settings) as stores:
        filler = enrolled(stores.enrolments, FILLER, name="Filler 1", time_zone="Europe/Rome")
        stores.catalogue.merge([CatalogueEntry(139, "Film torn", "high", target=True)])
        stores.versions.add_and_promote(small_model(), report={"summary": "small"}, at=NOW - 48 * HOUR)
        said = np.array([0.9, 0.1], dtype=np.float32)
        moments = [NOW.replace(minute=0) - (24 + place) * HOUR for place in range(5)]
        stores.forecasts.add([StoredForecast(filler.row_id, at, 1, "ok", 3, 1.0, said) for at in moments])
        raise_alarms(stores, filler, *((NOW - place * HOUR, 139) for place in range(40)))
        connect_agent(stores, filler)
        service = Service(settings, stores)
        assert sum(service.scoring.service.score_all_due()) == 5
        service.auth.users.first_admin()


def answers(client: Client) -> dict[str, object]:
    found = {question: client.request("GET", question) for question in QUESTIONS}
    assert {question: answer.status_code for question, answer in found.items()} == dict.fromkeys(QUESTIONS, 200)
    return {question: answer.json() for question, answer in found.items()}


def test_a_service_moved_to_postgresql_answers_as_before_and_works_on(settings: Settings, moved: Settings) -> None:
    lived(settings)
    with serving(settings) as client:
        before = answers(client)
    assert moved.database_url
    with open_endpoint(str(settings.data_dir)) as source, open_endpoint(moved.database_url) as target:
        copy_database(source, target, on_progress=lambda *_: None)
    with serving(moved) as client:
        assert answers(client) == before
        enrolment = client.enrolment.enrol("lyon/wrapper-1", name="Wrapper 1")
        assert enrolment.job.id == 2, "numbers go on behind the copied ones"
