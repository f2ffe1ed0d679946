"""Notices, shelves, windows, acknowledgements and the outbox, on both databases."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta
from threading import Barrier

import pytest
from sqlalchemy import func, select

from service.auth.audit_store import AuditStore
from service.database.engine import Database
from service.database.tables import (
    acknowledgements,
    deliveries,
    maintenance_windows,
    notifications,
    shelved_alarms,
)
from service.errors import Conflict, NotFound
from service.learning.enrolment_store import EnrolmentStore
from service.machines.models import Machine
from service.machines.retention import Retention
from service.machines.retention_store import RetentionStore
from service.notifications.models import (
    MaintenanceWindow,
    Notification,
    NotificationChanges,
    NotificationQuery,
    SuppressionQuery,
)
from service.notifications.store import DeliveryStore, NotificationStore, WebhookStore
from service.notifications.suppression_store import AcknowledgementStore, MaintenanceStore, ShelvingStore
from service.notifications.webhook import DeliveryResult, Webhook
from tests.service.conftest import FILLER, NOW, enrolled
from wire.enums import DeliveryState, NotificationEnd, Severity

MINUTE, HOUR, DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)


@pytest.fixture
def filler(database: Database) -> Machine:
    return enrolled(EnrolmentStore(database), FILLER)


@pytest.fixture
def store(database: Database) -> NotificationStore:
    return NotificationStore(database)


def news(code: int = 139, severity: str = "high") -> Notification:
    return Notification(0, FILLER, code, "Film torn", severity, NOW, NOW + 8 * HOUR, 0.7, 0.4, "v1", NOW)


def hook(database: Database, *, severity: Severity = Severity.LOW, site: str | None = None) -> Webhook:
    made = Webhook(0, "http://127.0.0.1/x", "s", severity, site, None, enabled=True, created_at=NOW)
    return WebhookStore(database).add(made, who="test", reason=None)


def opened(store: NotificationStore, machine: Machine, *codes: int) -> list[Notification]:
    store.write(NotificationChanges(opened=[(machine.row_id, news(code)) for code in codes]), at=NOW, wall=NOW)
    return store.page(NotificationQuery())[::-1]


def count(database: Database, table: object) -> int:
    with database.read() as connection:
        return int(connection.execute(select(func.count()).select_from(table)).scalar_one())  # type: ignore[arg-type]


def test_a_notification_is_stored_as_it_was_said_with_a_delivery_for_each_who_asked(
    database: Database, store: NotificationStore, filler: Machine
) -> None:
    wanting = hook(database)
    hook(database, site="lyon")
    hook(database, severity=Severity.HIGH)
    store.write(NotificationChanges(opened=[(filler.row_id, news(severity="medium"))]), at=NOW, wall=NOW)
    [found] = store.page(NotificationQuery())
    assert found == replace(news(severity="medium"), id=found.id)
    [sent] = DeliveryStore(database).for_notifications([found.id])[found.id]
    assert (sent.webhook, sent.state, sent.attempts) == (wanting.id, DeliveryState.WAITING, 0)


def test_there_are_never_two_open_notification_of_one_alarm_however_many_open_them(
    database: Database, store: NotificationStore, filler: Machine
) -> None:
    hook(database)
    together = Barrier(4)

    def open_it(_: int) -> int:
        together.wait()
        return store.write(NotificationChanges(opened=[(filler.row_id, news())]), at=NOW, wall=NOW)

    with ThreadPoolExecutor(4) as hands:
        assert sum(hands.map(open_it, range(4))) == 1
    assert (count(database, notifications), count(database, deliveries)) == (1, 1)


def test_notification_are_live_while_open_unarmed_or_lately_rearmed(
    store: NotificationStore, filler: Machine
) -> None:
    first, second, third = opened(store, filler, 1, 2, 3)
    store.write(NotificationChanges(closed=[(second.id, NotificationEnd.OCCURRED)]), at=NOW, wall=NOW)
    store.write(NotificationChanges(closed=[(third.id, NotificationEnd.CLEARED)]), at=NOW, wall=NOW)
    assert [one.id for one in store.current([filler.row_id], NOW - MINUTE)] == [
        first.id,
        second.id,
        third.id,
    ]
    assert [one.id for one in store.current([filler.row_id], NOW)] == [first.id, second.id]
    store.write(NotificationChanges(rearmed=[second.id]), at=NOW + HOUR, wall=NOW)
    assert [one.id for one in store.current([filler.row_id], NOW + HOUR)] == [first.id]
    assert [one.id for one in store.page(NotificationQuery(is_open=False))] == [third.id, second.id]
    assert [one.id for one in store.page(NotificationQuery(is_open=True))] == [first.id]
    assert [one.id for one in store.page(NotificationQuery(limit=1, before=third.id))] == [second.id]
    assert store.page(NotificationQuery(site="lyon")) == []


def test_only_machines_that_are_asked_for_and_those_let_go_are_read(
    database: Database, store: NotificationStore, filler: Machine
) -> None:
    opened(store, filler, 139)
    assert store.current([], NOW) == []
    EnrolmentStore(database).retire(filler, who="a", at=NOW, plant_at=NOW, reason="sold")
    assert len(store.current([], NOW)) == 1
    assert len(store.current(range(10_000), NOW)) == 1


def test_a_closed_alarm_can_be_news_again(store: NotificationStore, filler: Machine) -> None:
    [first] = opened(store, filler, 139)
    store.write(NotificationChanges(closed=[(first.id, NotificationEnd.CLEARED)]), at=NOW, wall=NOW)
    assert len(opened(store, filler, 139)) == 2


@pytest.mark.parametrize(
    ("end", "state"),
    [
        (NotificationEnd.SHELVED, DeliveryState.GIVEN_UP),
        (NotificationEnd.MAINTENANCE, DeliveryState.GIVEN_UP),
        (NotificationEnd.CLEARED, DeliveryState.WAITING),
        (NotificationEnd.OCCURRED, DeliveryState.WAITING),
    ],
)
def test_nobody_is_told_late_of_what_was_silenced_meanwhile(
    database: Database, store: NotificationStore, filler: Machine, end: NotificationEnd, state: DeliveryState
) -> None:
    hook(database)
    [notice] = opened(store, filler, 139)
    store.write(NotificationChanges(closed=[(notice.id, end)]), at=NOW, wall=NOW)
    [sent] = DeliveryStore(database).for_notifications([notice.id])[notice.id]
    assert sent.state is state


def test_a_delivery_is_claimed_by_one_courier_and_is_due_again_if_that_one_dies(
    database: Database, store: NotificationStore, filler: Machine
) -> None:
    hook(database)
    opened(store, filler, 139)
    outbox = DeliveryStore(database)
    [due] = outbox.due(NOW, limit=9)
    together = Barrier(2)

    def take(_: int) -> object:
        together.wait()
        return outbox.claim(due, now=NOW, lease=MINUTE)

    with ThreadPoolExecutor(2) as hands:
        taken = [parcel for parcel in hands.map(take, range(2)) if parcel]
    assert len(taken) == 1
    assert outbox.due(NOW, limit=9) == []
    [again] = outbox.due(NOW + MINUTE, limit=9)
    assert (again.attempts, again.key) == (1, due.key)


def test_what_waits_is_counted_while_its_webhook_is_told(
    database: Database, store: NotificationStore, filler: Machine
) -> None:
    outbox = DeliveryStore(database)
    assert outbox.backlog() == (0, None)
    told, off = hook(database), hook(database)
    opened(store, filler, 139)
    assert outbox.backlog() == (2, NOW)
    WebhookStore(database).switch(off, enabled=False, at=NOW, who="test", reason="quiet")
    assert outbox.backlog() == (1, NOW)
    parcel = outbox.claim(outbox.due(NOW, limit=1)[0], now=NOW, lease=MINUTE)
    assert parcel
    assert (parcel.webhook.id, outbox.backlog().number) == (told.id, 1), "on its way is not there"
    outbox.complete(parcel.delivery, DeliveryResult(204, ""), now=NOW, next_try=None)
    assert outbox.backlog() == (0, None)


def settled(answer: DeliveryResult, *, again: bool) -> Callable[[DeliveryStore], DeliveryState]:
    def settle(outbox: DeliveryStore) -> DeliveryState:
        [due] = outbox.due(NOW, limit=9)
        parcel = outbox.claim(due, now=NOW, lease=MINUTE)
        assert parcel
        outbox.complete(parcel.delivery, answer, now=NOW, next_try=NOW + HOUR if again else None)
        [after] = outbox.for_notifications([due.notification])[due.notification]
        assert (after.status, after.answer) == (answer.status, answer.text)
        return after.state

    return settle


@pytest.mark.parametrize(
    ("settle", "state"),
    [
        (settled(DeliveryResult(204, ""), again=True), DeliveryState.DELIVERED),
        (settled(DeliveryResult(500, "oops"), again=True), DeliveryState.WAITING),
        (settled(DeliveryResult(None, "No answer."), again=False), DeliveryState.GIVEN_UP),
    ],
)
def test_what_a_receiver_said_is_kept(
    database: Database,
    store: NotificationStore,
    filler: Machine,
    settle: Callable[[DeliveryStore], DeliveryState],
    state: DeliveryState,
) -> None:
    hook(database)
    opened(store, filler, 139)
    outbox = DeliveryStore(database)
    assert settle(outbox) is state
    assert len(outbox.due(NOW + 2 * HOUR, limit=9)) == (state is DeliveryState.WAITING)


def test_a_failure_does_not_undo_what_was_given_up_meanwhile(
    database: Database, store: NotificationStore, filler: Machine
) -> None:
    hook(database)
    [notice] = opened(store, filler, 139)
    outbox = DeliveryStore(database)
    parcel = outbox.claim(outbox.due(NOW, limit=1)[0], now=NOW, lease=MINUTE)
    assert parcel
    store.write(NotificationChanges(closed=[(notice.id, NotificationEnd.SHELVED)]), at=NOW, wall=NOW)
    outbox.complete(parcel.delivery, DeliveryResult(500, ""), now=NOW, next_try=NOW + HOUR)
    [after] = outbox.for_notifications([notice.id])[notice.id]
    assert after.state is DeliveryState.GIVEN_UP
    assert after.answer
    assert "shelved" in after.answer


def test_a_webhook_that_is_gone_or_off_is_not_told_and_one_that_is_removed_takes_its_deliveries_along(
    database: Database, store: NotificationStore, filler: Machine
) -> None:
    gone, off, removed = hook(database), hook(database), hook(database)
    outbox, hooks = DeliveryStore(database), WebhookStore(database)
    [notice] = opened(store, filler, 139)
    outbox.abandon(gone.id, now=NOW, plant_at=NOW, reason="Gone.")
    hooks.switch(off, enabled=False, at=NOW, who="test", reason="quiet")
    hooks.remove(removed, at=NOW, who="test", reason="moved")
    assert outbox.due(NOW, limit=9) == []
    states = {one.webhook: one.state for one in outbox.for_notifications([notice.id])[notice.id]}
    assert states == {gone.id: DeliveryState.GIVEN_UP, off.id: DeliveryState.WAITING}
    assert (hooks.get(gone.id).enabled, hooks.get(gone.id).error) == (False, "Gone.")
    back = hooks.switch(off, enabled=True, at=NOW, who="test", reason="back")
    assert (back.enabled, back.error) == (True, None)
    assert [one.webhook for one in outbox.due(NOW, limit=9)] == [off.id]
    with pytest.raises(NotFound):
        hooks.get(removed.id)
    assert "http" not in " ".join(str(deed) for deed in AuditStore(database).newest()), (
        "an address may hold a token"
    )


def test_a_shelf_ends_by_itself_or_is_lifted_once_and_a_new_one_takes_its_place(
    database: Database, filler: Machine
) -> None:
    store = ShelvingStore(database)
    first = store.add(filler, 139, at=NOW, until=NOW + HOUR, who="anna", reason="sensor")
    store.add(filler, 26, at=NOW, until=NOW + HOUR, who="anna", reason="door")
    second = store.add(filler, 139, at=NOW + MINUTE, until=NOW + 2 * HOUR, who="anna", reason="still")
    assert store.get(first.id).end == NOW + MINUTE
    assert [one.id for one in store.active(NOW + MINUTE) if one.code == 139] == [second.id]
    assert [one.code for one in store.active(NOW + HOUR)] == [139]
    assert store.active(NOW + 2 * HOUR) == []
    lifted = store.unshelve(second, at=NOW + 2 * MINUTE, who="anna", reason=None)
    assert (lifted.unshelved_at, lifted.is_active(NOW + 2 * MINUTE)) == (NOW + 2 * MINUTE, False)
    with pytest.raises(Conflict, match="already ended"):
        store.unshelve(second, at=NOW + 3 * MINUTE, who="anna", reason=None)
    assert [one.code for one in store.page(SuppressionQuery(active_at=NOW + 5 * MINUTE))] == [26]
    assert len(store.between(NOW, NOW + DAY)) == 3
    assert len(store.between(NOW + 2 * MINUTE, NOW + DAY)) == 1
    deeds = [(deed.action, deed.subject, deed.reason) for deed in AuditStore(database).newest(4)]
    assert deeds[:2] == [
        ("unshelve", "padova/filler-1 code 139", None),
        ("shelve", "padova/filler-1 code 139", "still"),
    ]


def test_a_window_is_planned_holds_and_is_cancelled_once(database: Database) -> None:
    store = MaintenanceStore(database)
    window = store.add(MaintenanceWindow(0, "padova", None, NOW + HOUR, NOW + DAY, "anna", "overhaul"), at=NOW)
    own = store.add(MaintenanceWindow(0, "padova", "filler-1", NOW, NOW + DAY, "anna", "belt"), at=NOW)
    assert [one.id for one in store.active(NOW)] == [own.id]
    assert {one.id for one in store.active(NOW + HOUR)} == {window.id, own.id}
    assert [one.id for one in store.page(SuppressionQuery(site="padova", machine="filler-2"))] == [window.id]
    store.cancel(window, at=NOW, who="anna", reason="not needed")
    assert [one.id for one in store.active(NOW + HOUR)] == [own.id]
    with pytest.raises(Conflict, match="already ended"):
        store.cancel(window, at=NOW, who="anna", reason=None)
    with pytest.raises(NotFound):
        store.get(999)


def test_an_acknowledgement_knows_its_notification_and_ends_with_the_likelihood(
    database: Database, store: NotificationStore, filler: Machine
) -> None:
    known = AcknowledgementStore(database)
    [notice] = opened(store, filler, 139)
    first = known.add(filler, 139, at=NOW, who="anna", note="reel is coming")
    other = known.add(filler, 26, at=NOW, who="anna", note=None)
    known.add(filler, 139, at=NOW + MINUTE, who="bruno", note=None)
    assert (first.notification, other.notification) == (notice.id, None)
    assert known.for_notifications([notice.id])[notice.id] == first, "the first who knew"
    store.write(NotificationChanges(ended_acks=[first.id]), at=NOW + HOUR, wall=NOW)
    assert first.id not in {one.id for one in known.active()}
    assert known.page(SuppressionQuery())[-1].ended_at == NOW + HOUR


def test_what_is_over_for_long_is_forgotten_and_what_stands_is_not(
    database: Database, store: NotificationStore, filler: Machine
) -> None:
    hook(database)
    [first, _open] = opened(store, filler, 1, 2)
    store.write(NotificationChanges(closed=[(first.id, NotificationEnd.CLEARED)]), at=NOW, wall=NOW)
    ShelvingStore(database).add(filler, 1, at=NOW, until=NOW + HOUR, who="a", reason="x")
    ShelvingStore(database).add(filler, 2, at=NOW, until=NOW + 500 * DAY, who="a", reason="x")
    MaintenanceStore(database).add(MaintenanceWindow(0, "padova", None, NOW, NOW + HOUR, "a", "x"), at=NOW)
    known = AcknowledgementStore(database)
    ended = known.add(filler, 1, at=NOW, who="a", note=None)
    known.add(filler, 2, at=NOW, who="a", note=None)
    store.write(NotificationChanges(ended_acks=[ended.id]), at=NOW, wall=NOW)
    kept = Retention(RetentionStore(database), keep=400 * DAY, keep_quarantined=90 * DAY)
    kept.apply(NOW + 399 * DAY)
    tables = (notifications, deliveries, shelved_alarms, maintenance_windows, acknowledgements)
    assert [count(database, table) for table in tables] == [2, 2, 2, 1, 2]
    kept.apply(NOW + 401 * DAY)
    assert [count(database, table) for table in tables] == [1, 1, 1, 0, 1]


def test_an_erased_machine_leaves_no_notification_behind(
    database: Database, store: NotificationStore, filler: Machine
) -> None:
    hook(database)
    opened(store, filler, 139)
    AcknowledgementStore(database).add(filler, 139, at=NOW, who="a", note=None)
    ShelvingStore(database).add(filler, 1, at=NOW, until=NOW + HOUR, who="a", reason="x")
    EnrolmentStore(database).erase(filler, who="a", at=NOW, plant_at=NOW, reason="asked")
    tables = (notifications, deliveries, shelved_alarms, acknowledgements)
    assert [count(database, table) for table in tables] == [0, 0, 0, 0]
