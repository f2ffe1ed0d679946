"""Cleared and acknowledged alarms and stops are neither features nor labels nor outcomes."""

from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest

from forecasting.history import HistorySpec
from service.app.service import Service
from service.app.stores import Stores
from service.database.event_row import EventRow, flag_of
from service.machines.events import EventWrite
from service.machines.models import Machine
from tests.service.conftest import NOW, connect_agent, raise_alarms
from wire.events import TransitionKind
from wire.timestamps import to_us

HOURS = 24 * 20


def learned_and_forecast(service: Service, stores: Stores, machine: Machine) -> list[Any]:
    data = service.learning.enrolment.datasets.build(machine, NOW, HistorySpec(), listed=[26, 139])
    (made,) = service.forecasts.service.forecast_now([machine], NOW)
    start = NOW - timedelta(days=30)
    (evidence,) = stores.events.evidence([machine], start, NOW)
    return [
        data.fingerprint,
        data.unlisted,
        made.forecast,
        evidence.series.codes.tolist(),
        (evidence.first_at, evidence.last_at),
        stores.events.count(machine, start, NOW),
    ]


@pytest.mark.usefixtures("champion")
def test_training_data_and_forecasts_are_the_same_with_and_without_clears(
    service: Service, stores: Stores, filler: Machine
) -> None:
    alarms = [(NOW - timedelta(hours=hour), (26, 139, 7)[hour % 3]) for hour in range(1, HOURS)]
    raise_alarms(stores, filler, *alarms)
    connect_agent(stores, filler)
    before = learned_and_forecast(service, stores, filler)
    epoch, kinds = uuid4(), list(TransitionKind)
    rows = [
        EventRow(filler.row_id, epoch, seq, code, to_us(at) + 60_000_000, flag_of(kinds[seq % 4]))
        for seq, (at, code) in enumerate([*alarms, (NOW - timedelta(days=25), 99)], start=1)
    ]
    assert stores.events.commit(EventWrite(to_us(NOW), events=rows)).stored == HOURS
    assert learned_and_forecast(service, stores, filler) == before
