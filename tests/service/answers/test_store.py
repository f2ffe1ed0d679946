"""Answers: one per notification or per horizon of an expected alarm, visible by site."""

from datetime import timedelta
from threading import Barrier, Thread

import pytest

from service.answers.store import AnswerQuery, AnswerStore
from service.database.engine import Database
from service.errors import NotFound
from service.learning.enrolment_store import EnrolmentStore
from service.machines.models import Machine
from service.machines.retention_store import RetentionStore
from service.notifications.models import Notification, NotificationChanges
from service.notifications.store import NotificationStore
from tests.service.conftest import NOW, enrolled
from wire.enums import Answer
from wire.identity import MachineId
from wire.rest.answers import AnswerCounts, AnswerCreate, AnswerView

HOUR = timedelta(hours=1)


def machine_at(database: Database, site: str) -> Machine:
    return enrolled(EnrolmentStore(database), MachineId(site, "filler-1"))


def notify(database: Database, machine: Machine) -> int:
    news = Notification(0, machine.id, 139, "Film torn", "high", NOW, NOW + 8 * HOUR, 0.7, 0.4, "v1", NOW)
    store = NotificationStore(database)
    store.write(NotificationChanges(opened=[(machine.row_id, news)]), at=NOW, wall=NOW)
    return store.current([machine.row_id], NOW)[-1].id


def answer_alarm(
    store: AnswerStore, machine: Machine, answer: Answer, *, after: timedelta = timedelta()
) -> AnswerView:
    given = AnswerCreate(answer=answer)
    return store.answer_alarm(machine, 139, given, who="anna", at=NOW + after, valid=8 * HOUR)


def test_an_answer_replaces_the_one_to_the_same_notification(database: Database) -> None:
    store, machine = AnswerStore(database), machine_at(database, "padova")
    number = notify(database, machine)
    store.answer_notification(number, AnswerCreate(answer=Answer.WRONG), who="anna", at=NOW)
    changed = answer_alarm(store, machine, Answer.HANDLED, after=HOUR)
    assert changed.notification == number, "an alarm with an open notification is answered through it"
    assert store.page(AnswerQuery()) == [changed]
    assert store.for_notifications([number]) == {number: changed}


def test_an_expected_alarm_has_one_answer_per_horizon(sqlite_database: Database) -> None:
    store, machine = AnswerStore(sqlite_database), machine_at(sqlite_database, "padova")
    answer_alarm(store, machine, Answer.WRONG)
    first = answer_alarm(store, machine, Answer.USEFUL, after=7 * HOUR)
    second = answer_alarm(store, machine, Answer.USEFUL, after=15 * HOUR)
    assert store.page(AnswerQuery()) == [second, first]
    assert list(store.all(AnswerQuery(code=139))) == [second, first]
    assert store.page(AnswerQuery(code=26)) == []
    twice = AnswerCounts(site="padova", machine="filler-1", code=139, text="Alarm 139", useful=2)
    assert store.counts(AnswerQuery(site="padova")) == [twice]
    once = twice.model_copy(update={"useful": 1})
    assert store.counts(AnswerQuery(since=NOW, until=NOW + 8 * HOUR)) == [once]


def test_answers_of_other_sites_neither_exist_nor_can_be_given(sqlite_database: Database) -> None:
    everywhere = AnswerStore(sqlite_database)
    store = AnswerStore(sqlite_database, lambda: frozenset({"padova"}))
    other, own = machine_at(sqlite_database, "lyon"), machine_at(sqlite_database, "padova")
    number = notify(sqlite_database, other)
    answer_alarm(everywhere, other, Answer.HANDLED)
    mine = answer_alarm(everywhere, own, Answer.WRONG)
    assert store.page(AnswerQuery()) == list(store.all(AnswerQuery())) == [mine]
    assert store.for_notifications([number]) == {}
    assert [count.site for count in store.counts(AnswerQuery())] == ["padova"]
    for hidden in (number, number + 1):
        with pytest.raises(NotFound, match=f"Notification {hidden} does not exist"):
            store.answer_notification(hidden, AnswerCreate(answer=Answer.WRONG), who="anna", at=NOW)


def test_of_answers_at_the_same_moment_one_stays(database: Database) -> None:
    store, machine = AnswerStore(database), machine_at(database, "padova")
    number, start, errors = notify(database, machine), Barrier(4), list[Exception]()

    def give() -> None:
        start.wait()
        try:
            store.answer_notification(number, AnswerCreate(answer=Answer.HANDLED), who="anna", at=NOW)
        except Exception as error:  # noqa: BLE001 - asserted below
            errors.append(error)

    threads = [Thread(target=give) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert len(store.page(AnswerQuery())) == 1


def test_old_answers_are_deleted_with_the_history(sqlite_database: Database) -> None:
    store, machine = AnswerStore(sqlite_database), machine_at(sqlite_database, "padova")
    answer_alarm(store, machine, Answer.HANDLED)
    kept = answer_alarm(store, machine, Answer.HANDLED, after=9 * HOUR)
    RetentionStore(sqlite_database).delete_other(NOW + HOUR, NOW)
    assert store.page(AnswerQuery()) == [kept]


def test_an_erased_machine_takes_its_answers_with_it(sqlite_database: Database) -> None:
    store, machine = AnswerStore(sqlite_database), machine_at(sqlite_database, "padova")
    number = notify(sqlite_database, machine)
    answer_alarm(store, machine, Answer.HANDLED)
    EnrolmentStore(sqlite_database).erase(machine, who="admin", at=NOW, plant_at=NOW, reason="sold")
    assert store.page(AnswerQuery()) == []
    with pytest.raises(NotFound):
        store.answer_notification(number, AnswerCreate(answer=Answer.WRONG), who="anna", at=NOW)
