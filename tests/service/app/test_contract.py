"""The API against its own document: whatever is asked, the answer is one that the document promises, and no 5xx.

schemathesis thinks of the requests, good and bad ones; half of them are about things that exist. Who asks is a
parameter, because the document holds for everybody.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.openapi import from_asgi
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from service.app.configuration import load_settings
from service.app.service import Service
from service.app.stores import Stores, open_stores
from service.auth.authenticator import LOCAL
from service.database.engine import Database
from service.machines.catalogue import CatalogueEntry
from service.machines.events import EventWrite, QuarantineRow
from service.notifications.store import WebhookStore
from service.notifications.webhook import Webhook
from service.settings import DynamicSecurity
from tests.service.conftest import FILLER, NOW, connect_agent, enrolled, raise_alarms, small_model
from wire.enums import Role, Severity
from wire.timestamps import to_us

EXAMPLES = 8  # for each operation, once good and once bad; more are for a patient evening
CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
]
EXCUSED: dict[str, tuple[Any, ...]] = {
    "/readyz": (not_a_server_error,),  # a service that only answers is not ready, and says so with 503
    "/v1/stream": (not_a_server_error,),  # nor has it anything to stream
    "/v1/jobs/{job}/events": (
        response_schema_conformance,
    ),  # the document speaks of the stream, not of its events
}
# Who asks, and how many cases of each operation: whoever may do most is asked about most.
PRINCIPALS: dict[Role | None, int] = {None: 2, Role.VIEWER: 2, Role.OPERATOR: 2, Role.ADMIN: EXAMPLES}


@dataclass
class Plant:
    """A service in this process, with one of everything that can be asked for."""

    service: Service
    stores: Stores
    webhook: int = 0
    keys: dict[Role, str] = field(default_factory=dict)

    def headers(self, role: Role | None) -> dict[str, str]:
        """Return what somebody of a role sends to be known, and a stranger does not."""
        if role is None:
            return {}
        if role not in self.keys:
            made = self.service.auth.users.add_key(f"of-{role.value}", role, None, ttl=None, by=LOCAL)
            self.keys[role] = made.token
        return {"Authorization": f"Bearer {self.keys[role]}"}

    def furnish(self) -> None:
        """Bring back what an operation before may have let go."""
        filler = enrolled(self.stores.enrolments, FILLER)
        connect_agent(self.stores, filler)
        raise_alarms(self.stores, filler, *((NOW - timedelta(minutes=9 * n), 139 - n % 3) for n in range(1, 30)))
        refused = QuarantineRow(
            filler.row_id, "alarmcast/v1/padova/filler-1/events", "bad_code", "code: wrong", b"{}"
        )
        self.stores.events.commit(EventWrite(to_us(NOW), quarantined=[refused]))
        # Nobody listens there: what is sent on its way in a test must not reach anybody.
        hook = Webhook(0, "http://127.0.0.1:9/", "s" * 32, Severity.LOW, None, None, True, NOW, None)  # noqa: FBT003
        self.webhook = WebhookStore(self.stores.database).add(hook, who="test", reason=None).id

    @property
    def known(self) -> dict[str, Any]:
        """What path parameters are called that lead somewhere."""
        return {
            "site": FILLER.site,
            "machine": FILLER.machine,
            "version": "v1",
            "job": 1,
            "number": self.webhook,
        }


@pytest.fixture(scope="module")
def plant(tmp_path_factory: pytest.TempPathFactory, postgresql: str) -> Iterator[Plant]:
    """On PostgreSQL, because it refuses more than SQLite does: NUL in texts, numbers that are too large."""
    folder: Path = tmp_path_factory.mktemp("contract")
    emptied = Database(postgresql)
    with emptied.write() as connection:
        connection.exec_driver_sql("DROP SCHEMA public CASCADE")
        connection.exec_driver_sql("CREATE SCHEMA public")
    emptied.close()
    chosen = load_settings(
        data_dir=folder / "data",
        database_url=postgresql,
        clock_wall_origin=datetime.now(UTC),
        clock_plant_origin=NOW,
        clock_speed=0.001,
        open_docs=True,
        rate_per_second=0,
        broker_dynamic_security=DynamicSecurity.OFF,
    )
    with open_stores(chosen) as stores:
        stores.catalogue.merge(
            [
                CatalogueEntry(139, "Film torn", "high", target=True),
                CatalogueEntry(26, "Door open", "low", target=True),
            ]
        )
        stores.versions.add_and_promote(small_model(), report={"summary": "small"}, at=NOW - timedelta(days=1))
        service = Service(chosen, stores)
        service.forecasts.streams.close()  # streams end after what they have to say
        yield Plant(service, stores)


def _operations() -> Iterator[tuple[str, GenerationMode]]:
    """Name every operation while tests are collected, from an app that nobody asks, and how it can be asked."""
    with TemporaryDirectory() as folder:
        chosen = load_settings(data_dir=Path(folder))
        with open_stores(chosen) as stores:
            paths = Service(chosen, stores).app.openapi()["paths"]
    for path, methods in paths.items():
        for method, operation in methods.items():
            yield f"{method.upper()} {path}", GenerationMode.POSITIVE
            if operation.get("parameters") or operation.get("requestBody"):
                yield f"{method.upper()} {path}", GenerationMode.NEGATIVE


@pytest.fixture(scope="module")
def document(plant: Plant) -> schemathesis.BaseSchema:
    return from_asgi("/openapi.json", plant.service.app)


def _cases() -> Iterator[tuple[str, GenerationMode, Role | None]]:
    """Name who asks what: bad requests are an admin's, because others are refused before theirs is read."""
    for operation, mode in _operations():
        for role in PRINCIPALS:
            if role is Role.ADMIN or mode is GenerationMode.POSITIVE:
                yield operation, mode, role


@pytest.mark.parametrize(("operation", "mode", "role"), list(_cases()))
def test_every_answer_is_one_that_the_document_promises(
    plant: Plant, document: schemathesis.BaseSchema, operation: str, mode: GenerationMode, role: Role | None
) -> None:
    method, path = operation.split(" ")
    plant.furnish()
    headers = plant.headers(role)

    @settings(
        max_examples=PRINCIPALS[role],
        deadline=None,
        database=None,
        derandomize=True,
        suppress_health_check=list(HealthCheck),
        phases=(Phase.explicit, Phase.generate),
    )
    @given(case=document[path][method].as_strategy(generation_mode=mode), existing=st.booleans())
    def ask(case: "schemathesis.Case[Any]", existing: bool) -> None:  # noqa: FBT001
        if existing or path.endswith("/test"):
            case.path_parameters = {**case.path_parameters, **plant.known} if case.path_parameters else {}
        checks = [check for check in CHECKS if check not in EXCUSED.get(path, ())]
        case.validate_response(case.call(headers=headers), checks=checks)

    ask()
