"""Forecasts become notices on a real store: once, quiet where people asked for it, and they stay as they were."""

from datetime import UTC, datetime, timedelta

import pytest

from forecasting.history import HistorySpec
from forecasting.window import WindowSpec
from service.app.service import Service
from service.app.stores import Stores
from service.errors import Unavailable
from service.forecasts.cache import CachedForecast
from service.learning.training_data import DatasetBuilder, TrainingDataPolicy
from service.machines.models import Machine
from service.notifications.models import (
    MaintenanceWindow,
    NotificationQuery,
    SuppressionQuery,
)
from service.notifications.store import DeliveryStore, NotificationStore, WebhookStore
from service.notifications.thread import NotificationThread
from service.notifications.webhook import Webhook
from tests.conftest import wait_until
from tests.service.conftest import FILLER, NOW, connect_agent, enrolled, raise_alarms
from tests.support.notifications import HOUR, MINUTE, Harness, forecast
from wire.enums import NotificationEnd, Severity
from wire.forecasts import ForecastStatus
from wire.identity import MachineId
from wire.rest.policies import NotificationPolicy, SeverityRule
from wire.timestamps import from_us


@pytest.fixture
def harness(stores: Stores, filler: Machine) -> Harness:
    assert filler.id == FILLER
    return Harness(stores)


@pytest.fixture
def hook(stores: Stores) -> Webhook:
    made = Webhook(0, "http://127.0.0.1/", "s", Severity.HIGH, "padova", None, enabled=True, created_at=NOW)
    return WebhookStore(stores.database).add(made, who="test", reason=None)


def test_a_change_is_reported_when_notifications_were_written_and_not_without(harness: Harness) -> None:
    changes: list[None] = []
    harness.service.on_change = lambda: changes.append(None)
    harness.say({139: 0.2})
    assert changes == []
    harness.say({139: 0.7})
    assert changes == [None]


def test_an_alarm_is_told_once_while_its_probability_wobbles(harness: Harness) -> None:
    said = [harness.say({139: one, 26: 0.1}, after=15 * MINUTE) for one in (0.4, 0.6, 0.45, 0.5, 0.41, 0.9)]
    assert said == [0, 1, 0, 0, 0, 0]
    [notice] = harness.found()
    assert (notice.code, notice.severity, notice.probability) == (139, "high", 0.6)
    assert harness.say({139: 0.1}, after=MINUTE) == 0
    assert harness.ends() == [NotificationEnd.CLEARED]
    assert harness.say({139: 0.9}, after=59 * MINUTE) == 0, "a quiet time follows"
    assert harness.say({139: 0.9}, after=MINUTE) == 1


def test_an_alarm_that_was_raised_closes_its_notification_and_is_no_news_while_it_stays_likely(
    harness: Harness, stores: Stores, filler: Machine
) -> None:
    raise_alarms(stores, filler, (NOW - MINUTE, 139))
    assert harness.say({139: 0.9}) == 1
    harness.say({139: 0.9}, after=MINUTE)
    assert harness.ends() == [None], "what was raised before is not what was forecast"
    raise_alarms(stores, filler, (NOW + 2 * MINUTE, 139))
    harness.say({139: 0.9}, after=2 * MINUTE)
    assert harness.ends() == [NotificationEnd.OCCURRED]
    assert [harness.say({139: 0.9}, after=HOUR) for _ in range(30)] == [0] * 30
    harness.say({139: 0.1}, after=MINUTE)
    assert harness.say({139: 0.9}, after=2 * HOUR) == 1


def test_a_shelf_silences_its_code_on_its_machine_alone_and_gives_it_back(
    harness: Harness, stores: Stores
) -> None:
    other = enrolled(stores.enrolments, MachineId("padova", "filler-2")).id
    assert harness.say({139: 0.9, 26: 0.2}) == 1
    harness.suppression.shelve(FILLER, 139, until=2 * HOUR, who="anna", reason="sensor")
    assert harness.service.pending.is_set(), "nobody waits for the next forecast"
    harness.service.run_once()
    assert harness.ends() == [NotificationEnd.SHELVED]
    assert harness.say({139: 0.9, 26: 0.9}, after=MINUTE) == 1
    assert harness.say({139: 0.9}, machine=other) == 1
    assert harness.say({139: 0.9, 26: 0.9}, after=2 * HOUR) == 1, "it is still likely, and the shelf is over"


def test_lifting_a_shelf_brings_the_alarm_back_at_once(harness: Harness) -> None:
    shelf = harness.suppression.shelve(FILLER, 139, until=2 * HOUR, who="anna", reason="sensor")
    assert harness.say({139: 0.9}) == 0
    harness.now += MINUTE
    harness.suppression.unshelve(FILLER, shelf.id, who="anna", reason=None)
    assert harness.service.run_once() == 1


@pytest.mark.parametrize("machine", [None, "filler-1"])
def test_maintenance_silences_a_machine_or_its_site_for_its_time(harness: Harness, machine: str | None) -> None:
    harness.say({139: 0.9})
    window = MaintenanceWindow(0, "padova", machine, NOW + HOUR, NOW + 2 * HOUR, "anna", "overhaul")
    harness.suppression.schedule_maintenance(window)
    harness.say({139: 0.9}, after=59 * MINUTE)
    assert harness.ends() == [None], "it has not begun"
    harness.say({139: 0.9, 26: 0.9}, after=MINUTE)
    assert harness.ends() == [NotificationEnd.MAINTENANCE]
    assert harness.say({139: 0.9, 26: 0.9}, after=HOUR) == 2


def test_what_somebody_acknowledged_is_not_told_again_before_it_was_unlikely(harness: Harness) -> None:
    harness.say({139: 0.9})
    assert (
        harness.suppression.acknowledge(FILLER, 139, who="anna", note=None).notification == harness.found()[0].id
    )
    shelf = harness.suppression.shelve(FILLER, 139, until=HOUR, who="anna", reason="sensor")
    harness.service.run_once()
    harness.suppression.unshelve(FILLER, shelf.id, who="anna", reason=None)
    assert harness.service.run_once() == 0
    assert harness.say({139: 0.9}, after=5 * HOUR) == 0
    harness.say({139: 0.1}, after=MINUTE)
    assert harness.suppression.acknowledgements.active() == []
    assert harness.say({139: 0.9}, after=2 * HOUR) == 1


@pytest.mark.parametrize("status", [ForecastStatus.STALE, ForecastStatus.WARMING_UP])
def test_forecasts_that_are_not_to_be_trusted_are_no_news(harness: Harness, status: ForecastStatus) -> None:
    assert harness.say({139: 0.9}, status=status) == 0
    harness.say({139: 0.9})
    harness.say({139: 0.1}, after=HOUR, status=status)
    assert harness.ends() == [None]
    harness.say({139: 0.9}, after=8 * HOUR, status=status)
    assert harness.ends() == [NotificationEnd.EXPIRED]


def test_a_code_or_a_machine_that_is_no_longer_forecast_takes_its_notification_along(
    harness: Harness, stores: Stores, filler: Machine
) -> None:
    harness.say({139: 0.9, 26: 0.9})
    harness.say({26: 0.9}, after=MINUTE)
    assert sorted(map(str, harness.ends())) == ["None", "withdrawn"]
    stores.enrolments.retire(filler, who="anna", at=NOW, plant_at=NOW, reason="sold")
    harness.say({26: 0.9}, after=MINUTE)
    assert set(harness.ends()) == {NotificationEnd.WITHDRAWN}


def test_a_restart_forgets_nothing_and_repeats_nothing(harness: Harness, stores: Stores) -> None:
    harness.say({139: 0.9})
    again = Harness(stores, harness.now)
    assert again.say({139: 0.9}, after=MINUTE) == 0
    again.say({139: 0.1}, after=MINUTE)
    assert Harness(stores, again.now).say({139: 0.9}, after=MINUTE) == 0, "the quiet time outlives it too"


@pytest.mark.usefixtures("hook")
def test_a_notification_and_its_deliveries_are_written_together(harness: Harness, stores: Stores) -> None:
    harness.say({139: 0.9, 26: 0.9})
    by_code = {one.code: one.id for one in harness.found()}
    assert list(DeliveryStore(stores.database).for_notifications(by_code.values())) == [by_code[139]]


def test_trouble_with_the_store_loses_no_forecast(harness: Harness, stores: Stores) -> None:
    with stores.database.write() as connection:
        connection.exec_driver_sql("ALTER TABLE notifications RENAME TO elsewhere")
    with pytest.raises(Unavailable):
        harness.say({139: 0.9})
    thread = NotificationThread(harness.service, interval=0.01)
    thread.start()
    wait_until(lambda: thread.last_error, "it complains")
    with stores.database.write() as connection:
        connection.exec_driver_sql("ALTER TABLE elsewhere RENAME TO notifications")
    wait_until(lambda: harness.service.opened == 1 and thread.last_error is None, "it has recovered")
    thread.stop()


def test_shelved_codes_are_what_the_fleet_and_figures_need(harness: Harness) -> None:
    desk, shelve = harness.suppression, harness.suppression.shelve
    shelve(FILLER, 139, until=2 * HOUR, who="a", reason="x")
    harness.now += HOUR
    shelve(FILLER, 139, until=3 * HOUR, who="a", reason="x")
    late = shelve(FILLER, 26, until=HOUR, who="a", reason="x")
    assert desk.shelved() == {FILLER: {139, 26}}
    harness.now += 30 * MINUTE
    desk.unshelve(FILLER, late.id, who="a", reason=None)
    assert desk.shelved() == {FILLER: {139}}
    everything = desk.excluded_spans(NOW, NOW + 10 * HOUR)
    assert [(one.machine, one.code) for one in everything] == [(FILLER, 139), (FILLER, 139), (FILLER, 26)]
    assert [(from_us(one.start_us) - NOW, from_us(one.end_us) - NOW) for one in everything] == [
        (timedelta(0), HOUR), (HOUR, 4 * HOUR), (HOUR, HOUR + 30 * MINUTE),
    ]  # fmt: skip
    assert len(desk.excluded_spans(NOW + 2 * HOUR, NOW + 3 * HOUR)) == 1
    assert desk.excluded_spans(NOW + 4 * HOUR, NOW + 5 * HOUR) == []


@pytest.mark.usefixtures("champion")
def test_the_running_parts_turn_announced_forecasts_into_notices(
    service: Service, stores: Stores, filler: Machine
) -> None:
    raise_alarms(stores, filler, *((NOW - number * HOUR, 139) for number in range(1, 40)))
    connect_agent(stores, filler)
    service.forecasts.thread.refresh.run_grid()
    service.notifications.service.run_once()
    newest = service.forecasts.cache.fresh_for([filler])[0].forecast
    expected = {alarm.code for alarm in newest.alarms if alarm.expected}
    assert newest.status is ForecastStatus.OK
    assert {one.code for one in NotificationStore(stores.database).page(NotificationQuery())} == expected
    assert expected, "or this test says nothing"


@pytest.mark.usefixtures("champion")
def test_no_shelf_acknowledgement_or_window_changes_a_forecast_or_a_dataset(
    service: Service, stores: Stores, filler: Machine
) -> None:
    alarms = [(NOW - number * 20 * MINUTE, (139, 26, 137)[number % 3]) for number in range(1, 2000)]
    raise_alarms(stores, filler, *alarms)
    connect_agent(stores, filler)

    school = DatasetBuilder(stores.machines, stores.events, WindowSpec(), TrainingDataPolicy(min_windows=1))

    def told() -> list[object]:
        made = service.forecasts.service.forecast_now([filler], NOW)[0]
        cut = school.build(filler, NOW, HistorySpec(), listed=())
        arrays = [
            array.tobytes() for part in (cut.train, cut.calibration, cut.holdout) for array in vars(part).values()
        ]
        assert len(cut.train) > 100, "or this test says nothing"
        return [made.forecast, made.stored.probabilities.tobytes(), *arrays]

    before = told()
    for code in (139, 26, 137):
        service.notifications.suppression.shelve(FILLER, code, until=HOUR, who="a", reason="x")
        service.notifications.suppression.acknowledge(FILLER, code, who="a", note=None)
    service.notifications.suppression.schedule_maintenance(
        MaintenanceWindow(0, "padova", None, NOW, NOW + 9 * HOUR, "a", "x")
    )
    assert len(service.notifications.suppression.shelves.page(SuppressionQuery())) == 3
    assert told() == before


def test_many_changes_are_written_in_pieces_with_a_pause_between_them(harness: Harness, stores: Stores) -> None:
    for number in range(60):
        enrolled(stores.enrolments, MachineId("lyon", f"filler-{number}"))
    pauses: list[int] = []
    for number in range(60):
        with_both = MachineId("lyon", f"filler-{number}")
        harness.service.on_forecast(
            CachedForecast(with_both, forecast(harness.now, {139: 0.9, 26: 0.9}, with_both), b"")
        )
    assert harness.service.run_once(lambda: pauses.append(1)) == 120
    assert len(pauses) == 2


def test_over_the_limit_of_a_shift_the_less_valuable_are_held_back(harness: Harness, hook: Webhook) -> None:
    policy = NotificationPolicy(per_shift=1)
    harness.service.policies.save("padova", policy, at=NOW, who="anna", reason="fewer")
    assert harness.say({26: 0.95, 139: 0.7}) == 2
    assert {one.code: one.held_back for one in harness.found()} == {139: False, 26: True}
    due = DeliveryStore(harness.stores.database).due(datetime.now(UTC), limit=9)
    assert [(one.webhook, one.notification) for one in due] == [(hook.id, harness.found()[0].id)]
    # The morning shift in Rome ends at 13:00 UTC.
    harness.say({26: 0.95}, after=4 * HOUR)
    assert harness.found()[1].is_open
    harness.say({26: 0.95}, after=HOUR)
    harness.say({26: 0.95}, after=15 * MINUTE)
    assert [one.ended for one in harness.found()][1:] == [NotificationEnd.SHIFT_ENDED, None]
    assert not harness.found()[2].held_back


def test_a_webhook_with_its_own_policy_has_its_own_notifications(harness: Harness, hook: Webhook) -> None:
    own = NotificationPolicy(high=SeverityRule(probability=0.3))
    harness.service.policies.save_own(hook, own, at=NOW, who="anna", reason="early warning")
    assert harness.say({139: 0.4}) == 1
    assert harness.say({139: 0.7}, after=15 * MINUTE) == 1
    assert [(one.webhook, one.threshold) for one in harness.found()] == [(hook.id, 0.3), (0, 0.5)]
    due = DeliveryStore(harness.stores.database).due(datetime.now(UTC), limit=9)
    assert [one.notification for one in due] == [harness.found()[0].id]
    harness.service.policies.save_own(hook, None, at=NOW, who="anna", reason="as others")
    harness.say({139: 0.7}, after=15 * MINUTE)
    assert harness.ends() == [NotificationEnd.WITHDRAWN, None]


def test_a_notification_counts_how_many_like_it_were_right(harness: Harness, filler: Machine) -> None:
    for raised in (True, False, True):
        harness.say({139: 0.9}, after=2 * HOUR)
        if raised:
            raise_alarms(harness.stores, filler, (harness.now + MINUTE, 139))
        harness.say({139: 0.1}, after=9 * HOUR)
        harness.say({139: 0.1}, after=HOUR)
    harness.say({139: 0.9}, after=2 * HOUR)
    assert [(one.similar_right, one.similar_total) for one in harness.found()] == [(0, 0), (1, 1), (1, 2), (2, 3)]
    assert harness.say({139: 0.1}, after=31 * 24 * HOUR) == 0
    harness.say({139: 0.9}, after=2 * HOUR)
    assert harness.found()[-1].similar_total == 0
