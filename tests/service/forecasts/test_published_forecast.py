"""A forecast of many targets: over MQTT what fits into a message, over REST and in streams everything."""

import pytest

from service.app.service import Service
from service.app.stores import Stores
from service.forecasts.cache import ForecastMade
from service.machines.catalogue import CatalogueEntry, size_warning
from service.machines.models import Machine
from tests.service.conftest import FILLER, NOW, connect_agent, small_model
from tests.support.forecasts import Announced, refresh
from wire.codec import MAX_BYTES
from wire.forecasts import Forecast, PublishedForecast

CODES = range(100_000, 100_500)


def entries(number: int) -> list[CatalogueEntry]:
    text = "Station {} module: position not reached in time"
    return [CatalogueEntry(code, text.format(code % 40), "medium", target=True) for code in CODES[:number]]


def test_a_forecast_of_five_hundred_targets_is_published_below_the_limit_of_a_message(
    service: Service, stores: Stores, filler: Machine
) -> None:
    connect_agent(stores, filler)
    stores.catalogue.merge(entries(len(CODES)))
    stores.versions.add_and_promote(small_model(targets=tuple(CODES)), report={}, at=NOW)
    mqtt, made = Announced(), list[ForecastMade]()
    service.bus.subscribe(ForecastMade, made.append)
    refresh(service, stores, mqtt).run_grid()
    payloads = made[0].newest.encoded, mqtt.published[0].payload
    whole, published = map(PublishedForecast.model_validate_json, payloads)
    assert len(payloads[0]) > MAX_BYTES, "otherwise this shows nothing"
    assert MAX_BYTES - 500 < len(payloads[1]) <= MAX_BYTES
    assert (len(whole.alarms), whole.omitted) == (500, 0)
    assert len(published.alarms) + published.omitted == 500
    assert sorted(published.alarms, key=lambda alarm: -alarm.probability) == published.alarms
    left_out = {alarm.code for alarm in whole.alarms} - {alarm.code for alarm in published.alarms}
    lowest = min(alarm.probability for alarm in published.alarms)
    assert all(alarm.probability <= lowest for alarm in whole.alarms if alarm.code in left_out)


@pytest.mark.usefixtures("filler")
def test_an_expected_alarm_is_published_before_likelier_ones_that_are_not(
    service: Service, stores: Stores
) -> None:
    stores.catalogue.merge(entries(len(CODES)))
    stores.versions.add_and_promote(small_model(targets=tuple(CODES)), report={}, at=NOW)
    newest = service.forecasts.cache.fresh_for(stores.machines.all())[0]
    unexpected = [alarm.model_copy(update={"expected": False}) for alarm in newest.forecast.alarms]
    alarms = [*unexpected[:-1], unexpected[-1].model_copy(update={"expected": True})]
    changed = newest.forecast.model_copy(update={"alarms": alarms})
    published = type(newest)(FILLER, changed, newest.encoded).published
    assert Forecast.model_validate_json(published).alarms[-1] == alarms[-1]


def test_a_catalogue_whose_forecast_does_not_fit_is_warned_of_with_a_sentence() -> None:
    assert size_warning(entries(300)) is None
    warning = size_warning(entries(500))
    assert warning
    assert "500 target codes" in warning
    assert "mark fewer codes as targets" in warning
    assert size_warning(CatalogueEntry(e.code, e.text, e.severity, target=False) for e in entries(500)) is None
