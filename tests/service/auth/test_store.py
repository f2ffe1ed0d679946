"""Users, sessions and keys, on both databases; and a book of changes that cannot be rewritten."""

from dataclasses import replace
from datetime import timedelta
from random import Random

import pytest
from sqlalchemy.exc import DBAPIError

from service.auth.audit_store import AuditQuery, AuditStore
from service.auth.models import ApiKey, User
from service.auth.store import ApiKeyStore, SessionStore, UserStore
from service.auth.tokens import KEY, SESSION, Token, digest, new_token
from service.database.engine import Database
from service.errors import Conflict, NotFound
from service.http.principal import Principal, RequestContext, Sites, request_context
from tests.service.conftest import NOW
from wire.enums import PrincipalKind, Role

HOUR = timedelta(hours=1)


def user(name: str = "maria", role: Role = Role.OPERATOR, sites: Sites = frozenset({"padova"})) -> User:
    return User(0, name, role, sites, "a hash", must_change=True, created_at=NOW)


def token(kind: str, seed: int = 1) -> Token:
    return new_token(kind, Random(seed).randbytes)  # noqa: S311 - of a test


def key(name: str = "andon", seed: int = 1, sites: Sites = None) -> ApiKey:
    made = token(KEY, seed)
    return ApiKey(0, name, made.prefix, digest(made.secret), Role.VIEWER, sites, NOW, "admin", NOW + HOUR)


@pytest.fixture
def users(database: Database) -> UserStore:
    return UserStore(database)


def test_a_user_is_kept_found_and_their_name_is_taken(users: UserStore) -> None:
    made = users.add(user(), who="admin")
    assert users.get("maria") == made == replace(user(), id=made.id)
    assert users.find("anna") is None
    with pytest.raises(NotFound, match="no user anna"):
        users.get("anna")
    with pytest.raises(Conflict, match="choose another"):
        users.add(user(role=Role.VIEWER), who="admin")
    assert [one.name for one in users.all()] == ["maria"]
    (deed,) = AuditStore(users.database).newest()
    assert (deed.actor, deed.action, deed.subject) == ("admin", "add user", "user maria")
    assert deed.reason == "operator of padova"


def test_only_the_first_user_is_the_first(users: UserStore) -> None:
    assert users.add_first(user("admin", Role.ADMIN, None), who="service")
    assert not users.add_first(user("other", Role.ADMIN, None), who="service")
    assert [one.name for one in users.all()] == ["admin"]


def test_somebody_who_may_do_everything_always_stays(users: UserStore) -> None:
    admin = users.add(user("admin", Role.ADMIN, None), who="service")
    users.add(user("padovas", Role.ADMIN, frozenset({"padova"})), who="admin")
    for change in ({"role": Role.OPERATOR, "sites": None}, {"role": Role.ADMIN, "sites": frozenset({"padova"})}):
        with pytest.raises(Conflict, match="make another first"):
            users.change(admin, at=NOW, who="admin", **change)
    with pytest.raises(Conflict, match="make another first"):
        users.remove(admin, at=NOW, who="admin")
    assert users.get("admin") == admin
    users.add(user("second", Role.ADMIN, None), who="admin")
    users.remove(admin, at=NOW, who="second")
    assert users.find("admin") is None
    assert [one.action for one in AuditStore(users.database).newest(1)] == ["remove user"]


def test_a_session_knows_its_user_as_they_are_now_and_ends_with_them(users: UserStore) -> None:
    users.add(user("admin", Role.ADMIN, None), who="service")
    sessions, maria = SessionStore(users.database), users.add(user(), who="admin")
    begun = sessions.begin(maria, token(SESSION), at=NOW, expires=NOW + HOUR, origin="192.0.2.7")
    found = sessions.find(token(SESSION).prefix)
    assert found == begun
    assert found
    assert found.digest == digest(token(SESSION).secret)
    assert (found.created_at, found.seen_at, found.origin) == (NOW, NOW, "192.0.2.7")
    assert found.user.last_login_at == NOW
    users.change(maria, role=Role.VIEWER, sites=None, at=NOW, who="admin")
    sessions.touch(found.id, at=NOW + HOUR / 2)
    again = sessions.find(token(SESSION).prefix)
    assert again
    assert (again.user.role, again.user.sites, again.seen_at) == (Role.VIEWER, None, NOW + HOUR / 2)
    users.remove(maria, at=NOW, who="admin")
    assert sessions.find(token(SESSION).prefix) is None


def test_another_password_ends_the_other_sessions(users: UserStore) -> None:
    sessions, maria = SessionStore(users.database), users.add(user(), who="admin")
    tokens = [token(SESSION, seed) for seed in range(3)]
    begun = [sessions.begin(maria, one, at=NOW, expires=NOW + HOUR, origin=None) for one in tokens]
    users.set_password(maria, "new", must_change=False, at=NOW, who="maria", keep=begun[1].id)
    assert [sessions.find(one.prefix) is not None for one in tokens] == [False, True, False]
    changed = users.get("maria")
    assert (changed.password, changed.must_change) == ("new", False)
    users.set_password(maria, "newer", must_change=True, at=NOW, who="admin")
    assert sessions.find(tokens[1].prefix) is None
    users.rehash(changed, "stale: somebody changed it meanwhile")
    assert users.get("maria").password == "newer"  # noqa: S105


def test_sessions_that_have_run_out_are_forgotten_and_one_can_be_ended(users: UserStore) -> None:
    sessions, maria = SessionStore(users.database), users.add(user(), who="admin")
    old, new = token(SESSION, 1), token(SESSION, 2)
    sessions.begin(maria, old, at=NOW, expires=NOW + HOUR, origin=None)
    begun = sessions.begin(maria, new, at=NOW + HOUR, expires=NOW + 2 * HOUR, origin=None)
    assert sessions.find(old.prefix) is None
    sessions.end(begun.id, at=NOW, who="maria")
    sessions.end(begun.id, at=NOW, who="maria")
    assert sessions.find(new.prefix) is None
    assert [one.action for one in AuditStore(users.database).newest(2)] == ["sign out", "sign in"]


def test_of_a_key_only_what_finds_and_proves_it_is_kept(database: Database) -> None:
    keys = ApiKeyStore(database)
    made = keys.add(key(sites=frozenset({"padova", "lyon"})))
    assert keys.get(made.id) == keys.find(made.prefix) == made
    assert made.sites == frozenset({"padova", "lyon"})
    with pytest.raises(Conflict, match="revoke that one first"):
        keys.add(key(seed=2))
    keys.touch(made.id, at=NOW + HOUR)
    assert keys.get(made.id).used_at == NOW + HOUR
    with database.read() as connection:
        (row,) = connection.exec_driver_sql("SELECT * FROM api_keys")
    assert token(KEY).secret not in str(row)
    keys.remove(made, at=NOW, who="admin", reason="lost")
    assert keys.all() == []
    with pytest.raises(NotFound):
        keys.get(made.id)
    assert [(one.action, one.reason) for one in AuditStore(database).newest(1)] == [("revoke key", "lost")]


def test_a_deed_bears_the_time_and_the_address_of_its_request(users: UserStore) -> None:
    later = NOW + 9 * HOUR
    who = Principal("admin", Role.ADMIN, None, PrincipalKind.SESSION)
    with request_context(RequestContext(who, "192.0.2.7", later)):
        users.add(user(), who="admin")
    users.add(user("anna"), who="service")
    anna, maria = AuditStore(users.database).newest()
    assert (maria.at, maria.origin) == (later, "192.0.2.7")
    assert (anna.at, anna.origin) == (NOW, None)


def test_the_book_is_read_in_pages_and_by_who(users: UserStore) -> None:
    for number in range(5):
        users.add(user(f"user-{number}"), who="admin" if number % 2 else "other")
    book = AuditStore(users.database)
    first = book.page(AuditQuery(limit=2))
    rest = book.page(AuditQuery(limit=10, before=first[-1].id))
    assert [one.subject for one in [*first, *rest]] == [f"user user-{number}" for number in (4, 3, 2, 1, 0)]
    assert {one.actor for one in book.page(AuditQuery(who="admin"))} == {"admin"}


@pytest.mark.parametrize("deed", ["UPDATE audit_log SET actor = 'nobody'", "DELETE FROM audit_log"])
def test_the_database_itself_refuses_to_rewrite_the_book(users: UserStore, deed: str) -> None:
    users.add(user(), who="admin")
    with pytest.raises(DBAPIError, match="only ever added to"), users.database.write() as connection:
        connection.exec_driver_sql(deed)
    assert [one.actor for one in AuditStore(users.database).newest()] == ["admin"]
