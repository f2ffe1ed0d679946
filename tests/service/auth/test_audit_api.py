"""The audit log over REST: every change, with who made it and from where."""

from datetime import timedelta
from typing import Any

from service.app.service import Service
from service.app.stores import Stores
from service.broker_access.store import CredentialStore
from service.http.permissions import PERMISSIONS, Table
from tests.service.auth.conftest import PASSWORD
from tests.service.conftest import NOW
from tests.support.api_client import Visitor, visitor
from tests.support.ingest import batch, event, take
from tests.support.two_sites import seed
from wire.enums import Role


def test_the_book_comes_in_pages_with_who_when_what_and_from_where(admin: Visitor, stores: Stores) -> None:
    for number in range(7):
        admin.users.add(f"user-{number}")
    entries = list(admin.audit.all(limit=3))
    assert [one.subject for one in entries] == [f"user user-{number}" for number in range(6, -1, -1)]
    assert {(one.actor, one.action, one.origin) for one in entries} == {("local admin", "add user", "127.0.0.1")}
    assert all(NOW <= one.at < NOW + timedelta(minutes=5) for one in entries), "plant time, as on every page"
    assert list(admin.audit.all(who="nobody")) == []
    assert len(stores.audit.newest()) == 7


def test_the_book_names_the_codes_whose_meaning_has_changed(admin: Visitor, stores: Stores) -> None:
    admin.catalogue.add("code,text,severity,target\n7,Jaw cold,high,yes\n8,Jaw hot,low,no\n")
    admin.catalogue.add("code,text,severity,target\n7,Jaw cold,low,no\n8,Jaw hot,low,no\n")
    told = [one.subject for one in stores.audit.newest(2)]
    assert told == ["0 new codes, 1 changed (7)", "2 new codes (7, 8)"]


# What each changing route is asked, so that it really changes something; in an order in which it can.
DEEDS: dict[str, dict[str, Any]] = {
    "POST /v1/users": {"json": {"name": "maria", "password": PASSWORD}},
    "PATCH /v1/users/maria": {"json": {"role": "operator"}},
    "POST /v1/users/maria/password": {},
    "DELETE /v1/users/maria": {},
    "POST /v1/keys": {"json": {"name": "andon"}},
    "DELETE /v1/keys/1": {},
    "POST /v1/machines": {"json": {"site": "graz", "machine": "filler-1"}},
    "POST /v1/machines/padova/filler-1/history": {"content": b"timestamp,alarm,serial\n2026-11-10 08:00:00,5,1\n"},
    "POST /v1/machines/padova/filler-1/acknowledgements": {"json": {"code": 139}},
    "POST /v1/machines/padova/filler-1/shelves": {"json": {"code": 139, "minutes": 5, "reason": "noisy"}},
    "DELETE /v1/machines/padova/filler-1/shelves/1": {},
    "POST /v1/maintenance": {"json": {"site": "padova", "until": "2030-01-01T00:00:00Z", "reason": "oil"}},
    "DELETE /v1/maintenance/1": {},
    "POST /v1/quarantine/replay": {"params": {"reason": "not_json"}},
    "POST /v1/quarantine/1/replay": {"json": {"body": batch(event(1)).decode()}},
    "POST /v1/catalogue": {
        "content": b"code,text,severity,target\n7,Jaw cold,high,yes\n",
        "headers": {"Content-Type": "text/csv"},
    },
    "PUT /v1/catalogue/7": {"json": {"text": "Jaw hot", "severity": "low", "target": False}},
    "POST /v1/notifications/1/answer": {"json": {"answer": "handled"}},
    "POST /v1/machines/padova/filler-1/answers": {"json": {"code": 139, "answer": "wrong"}},
    "POST /v1/models/v1/promote": {"json": {"reason": "better"}},
    "POST /v1/models/rollback": {"json": {"reason": "worse"}},
    "POST /v1/webhooks": {"json": {"url": "http://127.0.0.1:9/x"}},
    "PATCH /v1/webhooks/3": {"json": {"enabled": False, "reason": "loud"}},
    "PUT /v1/webhooks/3/policy": {"json": {"policy": {"per_shift": 3}, "reason": "On call"}},
    "PUT /v1/notification-policies/padova": {"json": {"policy": {"per_shift": 5}, "reason": "Fewer calls"}},
    "POST /v1/webhooks/3/test": {},
    "DELETE /v1/webhooks/3": {"params": {"reason": "gone"}},
    "POST /v1/machines/padova/filler-1/credentials/rotate": {},
    "POST /v1/machines/padova/filler-1/credentials/revoke": {"json": {"reason": "stolen"}},
    "POST /v1/machines/padova/filler-1/refresh": {},
    "POST /v1/machines/padova/filler-1/retire": {"json": {"reason": "sold"}},
    "POST /v1/machines/padova/filler-1/erase": {"json": {"reason": "asked"}},
}
OWN_AFFAIRS = {"POST /v1/session", "DELETE /v1/session", "POST /v1/me/password"}
CHANGES_NOTHING = {"POST /v1/machines/{site}/{machine}/history/preview"}
# There is one version and no broker; these write into the book in their own transactions.
CANNOT_HAPPEN_HERE = {
    "POST /v1/models/{version}/promote",
    "POST /v1/models/rollback",
    "POST /v1/machines/{site}/{machine}/credentials/rotate",
}


def template(deed: str) -> str:
    """Return the line of the table that a deed falls under."""
    method, _, path = deed.partition(" ")
    found = Table().find(method, path)
    assert found, deed
    return f"{method} {found.route}"


def test_every_change_is_in_the_book_with_who_did_it_and_from_where(service: Service, stores: Stores) -> None:
    machines = seed(service, stores)
    take(stores, batch(event(1, code=-1)))
    stores.jobs.queue(stores.jobs.newest(machine=machines["padova"].id)[0])
    CredentialStore(stores.database).issue_if_absent(machines["padova"], again=False, at=NOW, who="test")
    boss = visitor(service, Role.ADMIN)
    name = boss.session.me().name
    before = len(stores.audit.newest(1000))
    for deed, more in DEEDS.items():
        method, _, path = deed.partition(" ")
        answer = boss.ask(method, path, **more)
        if template(deed) in CANNOT_HAPPEN_HERE:
            assert answer.status_code in (409, 503), (deed, answer.text)
            continue
        assert answer.is_success, (deed, answer.text)
        after = len(stores.audit.newest(1000))
        assert after > before, f"{deed} is not in the book"
        assert {one.actor for one in stores.audit.newest(after - before)} == {name}, deed
        assert {one.origin for one in stores.audit.newest(after - before)} == {"127.0.0.1"}, deed
        before = after
    changing = {line for line in PERMISSIONS if not line.startswith(("GET ", "HEAD "))}
    assert {template(deed) for deed in DEEDS} == changing - OWN_AFFAIRS - CHANGES_NOTHING


def test_ones_own_affairs_are_in_the_book_too(maria: Visitor, stores: Stores) -> None:
    maria.session.change_password(PASSWORD, "another set of five plain words")
    maria.session.logout()
    told = [(one.actor, one.action) for one in stores.audit.newest(3)]
    assert told == [("maria", "sign out"), ("maria", "change password"), ("maria", "sign in")]
