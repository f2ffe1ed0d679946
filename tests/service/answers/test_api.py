"""Answers over REST: by role and site, in the audit log, on the scoreboard and in the export."""

import csv
import io

import pytest

from alarmcast import Forbidden, Gone, NotFound, Rejected
from service.app.service import Service
from service.app.stores import Stores
from service.machines.models import Machine
from tests.support.api_client import Visitor, visitor
from tests.support.two_sites import seed
from wire.enums import Answer, Role, Severity
from wire.rest.catalogue import AlarmResponse

RESPONSE = AlarmResponse(action="Splice the film", link="https://wiki.example/139")


@pytest.fixture
def fleet(service: Service, stores: Stores) -> dict[str, Machine]:
    return seed(service, stores)


@pytest.fixture
def operator(service: Service, fleet: dict[str, Machine]) -> Visitor:
    assert set(fleet) == {"padova", "lyon"}
    return visitor(service, Role.OPERATOR, ["padova"])


def test_an_operator_answers_a_notification_and_everybody_of_the_site_sees_it(
    service: Service, stores: Stores, operator: Visitor
) -> None:
    admin = Visitor(service, service.key)
    admin.catalogue.edit(139, text="Film torn", severity=Severity.HIGH, target=True, response=RESPONSE)
    (notification,) = operator.notifications.all()
    assert notification.response == RESPONSE
    note = "=roller <b>replaced</b>"
    given = operator.answers.answer_notification(notification.id, Answer.WRONG, note=note)
    (entry, *_) = stores.audit.newest(1)
    assert (entry.actor, entry.action, entry.subject) == (given.actor, "answer", "padova/filler-1 139: wrong")
    assert entry.reason == note
    assert next(operator.notifications.all()).answer == given
    assert list(operator.answers.all(code=139)) == [given]
    (counted,) = operator.scores.scoreboard().answers
    assert (counted.code, counted.text, counted.handled, counted.wrong) == (139, "Film torn", 0, 1)
    (row,) = csv.DictReader(io.StringIO(b"".join(operator.answers.export()).decode()))
    assert (row["answer"], row["note"], row["text"]) == ("wrong", f"'{note}", "Film torn")


def test_who_may_not_see_or_change_is_refused(service: Service, operator: Visitor) -> None:
    admin, viewer = Visitor(service, service.key), visitor(service, Role.VIEWER)
    hidden = next(one.id for one in admin.notifications.all() if one.site == "lyon")
    for number in (hidden, 4711):
        with pytest.raises(NotFound, match=f"Notification {number} does not exist"):
            operator.answers.answer_notification(number, Answer.HANDLED)
    with pytest.raises(NotFound):
        operator.answers.answer_alarm("lyon/filler-1", 139, Answer.HANDLED)
    with pytest.raises(Forbidden):
        viewer.answers.answer_notification(hidden, Answer.HANDLED)
    with pytest.raises(Rejected):
        operator.answers.answer_alarm("padova/filler-1", 139, Answer.HANDLED, note="x" * 501)
    admin.enrolment.retire("padova/filler-1", reason="sold")
    with pytest.raises(Gone):
        operator.answers.answer_alarm("padova/filler-1", 139, Answer.HANDLED)
