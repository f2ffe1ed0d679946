"""A shelved alarm is out of what is urgent and out of figures, and in everything else."""

from datetime import timedelta

import pytest

from alarmcast import Client, InProcess
from service.app.service import Service
from service.app.stores import Stores
from service.forecasts.alarm_value import alarm_value
from service.machines.models import Machine
from tests.conftest import wait_until
from tests.service.conftest import FILLER, NOW, connect_agent, raise_alarms


@pytest.fixture
def client(service: Service) -> Client:
    return Client("http://here", key=service.key, transport=InProcess(service.app))


@pytest.mark.usefixtures("champion")
def test_shelving_touches_urgency_and_figures_and_nothing_else(
    client: Client, stores: Stores, filler: Machine
) -> None:
    # In plant time a shelf holds from now on; the alarm that it keeps out of figures is raised under it.
    connect_agent(stores, filler)
    before = client.forecasts.get(FILLER)
    client.shelves.shelve(FILLER, 139, minutes=60, reason="the film is known to be bad")
    raise_alarms(stores, filler, (NOW + timedelta(minutes=1), 139), (NOW + timedelta(minutes=1), 26))

    def shelved() -> dict[int, bool]:
        (card,) = client.fleet.overview().cards
        return {alarm.code: alarm.shelved for alarm in card.likely}

    wait_until(lambda: shelved() == {139: True, 26: False}, "the card says what is shelved")
    (card,) = client.fleet.overview().cards
    assert card.likely[-1].code == 139
    assert [(one.code, one.text) for one in card.shelved] == [(139, "Film torn")]
    shown = [one for one in card.likely if not one.shelved]
    urgency = max((alarm_value(one.severity, one.probability, one.base_rate) for one in shown), default=0)
    assert (card.expected, card.urgency) == (sum(one.expected for one in shown), urgency)
    figures = client.alarm_metrics.get(since=NOW - timedelta(hours=1), until=NOW + timedelta(minutes=5))
    assert (figures.total.alarms, figures.excluded) == (1, 1)
    again = client.forecasts.get(FILLER)
    assert [(one.code, one.base_rate) for one in again.alarms] == [
        (one.code, one.base_rate) for one in before.alarms
    ]
