"""Explanations over REST: the forecast's own figures, in parts that sum, and problems to wrong questions."""

import asyncio
import itertools
import math
from datetime import datetime, timedelta
from typing import Any

import httpx
import numpy as np
import pytest

from forecasting.calibration import Calibration
from forecasting.forecaster import Forecaster
from forecasting.history import HistorySpec
from forecasting.network import Layer, Network
from forecasting.vocabulary import Vocabulary
from forecasting.window import WindowSpec
from service.app.service import Service
from service.app.stores import Stores
from service.machines.catalogue import CatalogueEntry
from service.machines.models import Machine
from tests.service.conftest import FILLER, NOW, Trusted, connect_agent, raise_alarms, small_model
from wire.identity import MachineId
from wire.rest.explanations import ExplanationView
from wire.timestamps import isoformat

BASE = "/v1/machines/padova/filler-1"
HOUR = timedelta(hours=1)
DAY = timedelta(days=1)


def get(service: Service, path: str, **query: Any) -> httpx.Response:
    async def ask() -> httpx.Response:
        transport = httpx.ASGITransport(Trusted(service), raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:
            return await client.get(path, params=query)

    return asyncio.run(ask())


def why(service: Service, **query: Any) -> ExplanationView:
    answer = get(service, f"{BASE}/explanation", **query)
    assert answer.status_code == 200, answer.text
    return ExplanationView.model_validate_json(answer.content)


def problem(answer: httpx.Response, status: int) -> str:
    assert (answer.status_code, answer.headers["content-type"]) == (status, "application/problem+json")
    return str(answer.json()["detail"])


def past_alarms() -> list[tuple[datetime, int]]:
    rng = np.random.default_rng(11)
    hours = np.sort(rng.uniform(0.2, 50 * 24, 900))
    codes = rng.choice([26, 137, 139, 999], 900)
    return [(NOW - float(hour) * HOUR, int(code)) for hour, code in zip(hours, codes, strict=True)]


@pytest.fixture
def lively(stores: Stores, filler: Machine) -> Machine:
    """A machine with seven weeks of alarms."""
    raise_alarms(stores, filler, *past_alarms())
    connect_agent(stores, filler)
    return filler


@pytest.fixture
def historian(stores: Stores) -> Forecaster:
    """A promoted model that also reads each code's own past."""
    rng, spec = np.random.default_rng(3), HistorySpec()
    figures = spec.width + len(spec.decays) + len(spec.spans) + (spec.width - spec.recent) + 4

    def layers(*sizes: int) -> tuple[Layer, ...]:
        return tuple(
            Layer(rng.normal(0, 0.5, (out, into)).astype(np.float32), rng.normal(size=out).astype(np.float32))
            for into, out in itertools.pairwise(sizes)
        )

    model = Forecaster(
        WindowSpec(),
        Vocabulary((26, 137, 139), (139, 26)),
        Network(layers(3, 8, 2), layers(figures, 6, 1)),
        Calibration(np.array([0.5, 1.5], dtype=np.float32), np.array([-1, 0.5], dtype=np.float32)),
        np.full(2, 0.5, dtype=np.float32),
        spec,
    )
    stores.versions.add_and_promote(model, report={}, at=NOW - DAY)
    return model


@pytest.mark.usefixtures("lively", "historian")
@pytest.mark.parametrize("parts", [1, 3, 6, 100])
def test_parts_sum_to_the_difference_from_the_usual(service: Service, parts: int) -> None:
    found = why(service, parts=parts)
    assert found.baseline_samples > 50
    for one in found.explanations:
        total = sum(part.contribution for part in one.contributions)
        assert total == pytest.approx(one.log_odds - one.baseline_log_odds, abs=1e-6)
        assert one.probability == pytest.approx(1 / (1 + math.exp(-one.log_odds)), abs=1e-3)
        assert one.baseline_probability == pytest.approx(1 / (1 + math.exp(-one.baseline_log_odds)), abs=1e-3)
        named = [part for part in one.contributions if part.kind != "others"]
        assert len(named) == min(parts, 6)  # three codes, recency, habit, condition
        sizes = [abs(part.contribution) for part in named]
        assert sizes == sorted(sizes, reverse=True)
        assert all(part.sentence.endswith(".") for part in one.contributions)
        assert all((part.share is None) == (part.kind != "alarm") for part in one.contributions)


@pytest.mark.usefixtures("lively", "historian")
@pytest.mark.parametrize("at", [None, NOW - 5 * HOUR, NOW - 3 * DAY])
def test_an_explanation_is_of_the_forecast_that_is_served(service: Service, at: datetime | None) -> None:
    query = {} if at is None else {"at": isoformat(at)}
    forecast = get(service, f"{BASE}/forecast", **query).json()
    found = why(service, **query)
    assert [(one.code, one.text, one.severity, one.probability) for one in found.explanations] == [
        (one["code"], one["text"], one["severity"], one["probability"]) for one in forecast["alarms"]
    ]
    assert isoformat(found.as_of) == forecast["as_of"]
    assert (found.model_version, found.hindsight) == (forecast["model_version"], forecast["hindsight"])
    assert (found.site, found.machine) == FILLER


@pytest.mark.usefixtures("champion")
def test_a_model_without_history_is_explained_by_codes_alone(service: Service, lively: Machine) -> None:
    assert lively
    found = why(service)
    assert {part.kind.value for one in found.explanations for part in one.contributions} == {"alarm"}
    assert {part.code for one in found.explanations for part in one.contributions} == {26, 137, 139}
    assert {one.text for one in found.explanations} == {"Film torn", "Door open"}
    seen = {part.code: part.seen for part in found.explanations[0].contributions}
    since = NOW - timedelta(minutes=1720)
    assert seen[137] == sum(code == 137 and since <= at for at, code in past_alarms())
    assert seen[137]


@pytest.mark.usefixtures("champion", "filler")
def test_a_machine_without_a_past_differs_from_nothing_and_the_reading_says_so(service: Service) -> None:
    found = why(service)
    assert found.baseline_samples == 0
    assert "a machine without data" in found.reading
    assert [one.contributions for one in found.explanations] == [[], []]
    assert all(one.probability == one.baseline_probability for one in found.explanations)


@pytest.mark.usefixtures("lively", "champion")
def test_the_reading_says_what_a_factor_is(service: Service) -> None:
    reading = why(service).reading
    assert "the baseline of this machine" in reading
    assert reading.endswith(".")
    assert "not what causes the alarm" in reading


@pytest.mark.usefixtures("lively", "champion")
def test_one_code_is_explained_alone(service: Service, stores: Stores) -> None:
    among = {one.code: one for one in why(service).explanations}
    assert why(service, code=26).explanations == [among[26]]
    assert "v1 does not forecast code 137" in problem(get(service, f"{BASE}/explanation", code=137), 404)
    stores.catalogue.merge([CatalogueEntry(137, "Film splice", "low", target=False)])
    texts = {part.text for part in why(service, code=26).explanations[0].contributions}
    assert "Film splice" in texts


@pytest.mark.usefixtures("lively", "champion")
def test_the_past_is_explained_by_the_version_that_spoke(service: Service, stores: Stores) -> None:
    stores.versions.add_and_promote(small_model(seed=2), report={}, at=NOW - 2 * HOUR)
    assert why(service, at=isoformat(NOW - HOUR)).model_version == "v2"
    before, long_before = why(service, at=isoformat(NOW - 3 * HOUR)), why(service, at=isoformat(NOW - 2 * DAY))
    assert (before.model_version, before.hindsight) == ("v1", False)
    assert (long_before.model_version, long_before.hindsight) == ("v2", True)


@pytest.mark.parametrize(
    "query",
    [
        {"at": isoformat(NOW + HOUR)},
        {"at": "2000-01-01T12:00:00Z"},
        {"at": "yesterday"},
        {"at": "2026-11-16T00:00:00"},
        {"code": -1},
        {"code": 2**31},
        {"code": "film"},
        {"parts": 0},
        {"parts": 101},
        {"parts": "all"},
    ],
)
def test_a_wrong_question_is_refused(shared_service: Service, query: dict[str, Any]) -> None:
    problem(get(shared_service, f"{BASE}/explanation", **query), 422)


@pytest.mark.usefixtures("champion")
@pytest.mark.parametrize("query", [{}, {"at": isoformat(NOW - HOUR)}])
def test_a_machine_that_is_unknown_or_retired_is_not_explained(
    service: Service, stores: Stores, filler: Machine, query: dict[str, Any]
) -> None:
    assert "enrol" in problem(get(service, "/v1/machines/padova/filler-9/explanation", **query), 404)
    problem(get(service, "/v1/machines/PADOVA/filler-9/explanation", **query), 422)
    stores.enrolments.retire(filler, who="test", at=NOW, plant_at=NOW, reason="sold")
    assert "has been retired" in problem(get(service, f"{BASE}/explanation", **query), 410)


@pytest.mark.usefixtures("filler")
def test_without_a_model_there_is_nothing_to_explain_yet(service: Service) -> None:
    for query in ({}, {"at": isoformat(NOW - HOUR)}):
        answer = get(service, f"{BASE}/explanation", **query)
        assert "alarmcast admin enrol" in problem(answer, 503)
        assert int(answer.headers["retry-after"]) > 0


def test_the_documented_example_sums_too() -> None:
    example = ExplanationView.model_validate(ExplanationView.model_json_schema()["examples"][0])
    assert MachineId(example.site, example.machine) == FILLER
    for one in example.explanations:
        total = sum(part.contribution for part in one.contributions)
        assert total == pytest.approx(one.log_odds - one.baseline_log_odds, abs=1e-6)
        assert one.probability == pytest.approx(1 / (1 + math.exp(-one.log_odds)), abs=1e-4)
