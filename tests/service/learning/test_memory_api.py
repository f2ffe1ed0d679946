"""GET /v1/memory on the real app: what a version remembers, by machine and by label."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest

from alarmcast import Client, InProcess, NotFound
from service.app.service import Service
from service.app.stores import Stores
from service.machines.catalogue import CatalogueEntry
from tests.service.conftest import NOW, small_model

REPORT: dict[str, Any] = {
    "memory": {
        "by_machine": {"padova/filler-1": {"replayed": 90, "held_out": 10}},
        "by_code": {"26": 12, "139": 31},
        "offered_by_code": {"26": 40, "139": 600},
        "kl_to_uniform": 0.1,
        "kl_offered": 0.46,
    }
}


@pytest.fixture
def client(service: Service) -> Iterator[Client]:
    with Client("http://here", key=service.key, transport=InProcess(service.app)) as made:
        yield made


def test_before_anything_is_learned_there_is_no_memory_and_that_is_no_error(client: Client) -> None:
    assert client.memory.get().model_dump() == {
        "version": None,
        "kl_to_uniform": None,
        "kl_offered": None,
        "machines": [],
        "codes": [],
        "versions": [],
    }


def test_the_memory_of_the_version_that_serves_is_told_by_machine_and_by_label(
    client: Client, stores: Stores
) -> None:
    stores.catalogue.merge([CatalogueEntry(139, "Film torn", "high", target=True)])
    stores.versions.add_and_promote(small_model(), report=REPORT, at=NOW)
    told = client.memory.get()
    assert (told.version, told.kl_to_uniform, told.kl_offered) == ("v1", 0.1, 0.46)
    assert [(one.machine, one.replayed, one.held_out) for one in told.machines] == [("padova/filler-1", 90, 10)]
    assert [(one.code, one.windows, one.offered) for one in told.codes] == [(139, 31, 600), (26, 12, 40)]
    assert told.codes[0].text == "Film torn"
    assert [(one.version, one.windows, one.machines) for one in told.versions] == [("v1", 100, 1)]


def test_a_version_that_was_learned_elsewhere_has_a_memory_that_nobody_knows(
    client: Client, stores: Stores
) -> None:
    stores.versions.add_and_promote(small_model(), report={"summary": "small"}, at=NOW)
    stores.versions.add_and_promote(small_model(seed=2), report=REPORT, at=NOW + timedelta(hours=1))
    told = client.memory.get(version="v1")
    assert (told.version, told.kl_to_uniform, told.machines, told.codes) == ("v1", None, [], [])
    with pytest.raises(NotFound, match="no version v3"):
        client.memory.get(version="v3")
