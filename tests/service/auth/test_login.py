"""Signing in: what is right, what is wrong, what waits, what ends; with clocks that the test moves."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from threading import Event, Semaphore

import pytest

from service.app.stores import Stores
from service.auth.authenticator import LOCAL, Authenticator
from service.auth.login import LoginService
from service.auth.models import UserUpdate
from service.auth.password import HashCost, PasswordHasher
from service.auth.store import ApiKeyStore, SessionStore, UserStore
from service.auth.users import UserService
from service.errors import Conflict, Forbidden, InputRejected, NotFound, NotSignedIn, TooMany, Unavailable
from service.http.principal import Principal
from tests.service.conftest import NOW
from wire.enums import PrincipalKind, Role

PASSWORD = "four unrelated plain words"  # noqa: S105
OTHER = "another set of five plain words"
HOUR, DAY = timedelta(hours=1), timedelta(days=1)


@dataclass(frozen=True)
class Counting(PasswordHasher):
    """The real hasher, cheap, with a count of what it was asked."""

    cost: HashCost = field(default_factory=lambda: HashCost(rounds=1, kilobytes=64))
    verified: list[bool] = field(default_factory=list)

    def verify(self, kept: str | None, password: str) -> bool:
        self.verified.append(kept is not None)
        return super().verify(kept, password)


class House:
    """The flows on a real store, and the clocks they go by."""

    def __init__(self, stores: Stores) -> None:
        self.wall, self.monotonic, self.hasher = NOW, 0.0, Counting()
        self.users, self.keys = UserStore(stores.database), ApiKeyStore(stores.database)
        sessions = SessionStore(stores.database)
        self.access = Authenticator(sessions, self.keys, self._wall, idle=3 * DAY, monotonic=self._monotonic)
        self.desk = LoginService(
            self.users,
            sessions,
            self.hasher,
            self.access,
            self._wall,
            ttl=30 * DAY,
            monotonic=self._monotonic,
        )
        self.people = UserService(
            self.users, self.keys, self.hasher, self.access, self._wall, reset_throttle=self.desk.throttle.reset
        )

    def pass_time(self, time: timedelta) -> None:
        self.wall += time
        self.monotonic += time.total_seconds()

    def sign_in(self, name: str = "maria", password: str = PASSWORD, origin: str = "192.0.2.7") -> str:
        return self.desk.login(name, password, origin=origin).token

    def who(self, token: str) -> Principal:
        found = self.access.authenticate(token)
        assert found
        return found

    def _wall(self) -> datetime:
        return self.wall

    def _monotonic(self) -> float:
        return self.monotonic


@pytest.fixture
def house(stores: Stores) -> House:
    house = House(stores)
    house.people.add_user("maria", Role.OPERATOR, frozenset({"padova"}), password=PASSWORD, by=LOCAL)
    return house


def test_a_session_is_somebody_until_it_is_ended(house: House) -> None:
    token = house.sign_in()
    maria = house.who(token)
    assert (maria.name, maria.role, maria.sites) == ("maria", Role.OPERATOR, frozenset({"padova"}))
    assert (maria.kind, maria.must_change) == (PrincipalKind.SESSION, False)
    house.desk.logout(maria)
    assert house.access.authenticate(token) is None


def test_a_token_that_was_changed_anywhere_is_nobodys(house: House) -> None:
    token = house.sign_in()
    kind, prefix, secret = token.split("_")
    wrong = ["", "x", token[:-1], token + "0", f"{kind}_{prefix}_", f"ack_{prefix}_{secret}", f"{kind}__{secret}"]
    assert [house.access.authenticate(one) for one in wrong] == [None] * len(wrong)


def test_a_wrong_password_and_an_unknown_name_get_the_same_answer_after_the_same_work(house: House) -> None:
    said = []
    for name in ("maria", "nobody"):
        with pytest.raises(NotSignedIn) as caught:
            house.sign_in(name, "not the password")
        said.append(str(caught.value))
    assert said[0] == said[1]
    assert house.hasher.verified == [True, False]  # one verification each, of a real hash and of nobody's


def test_wrong_passwords_wait_ever_longer_for_names_that_exist_and_for_those_that_do_not(house: House) -> None:
    for name in ("maria", "nobody"):
        for _ in range(5):
            with pytest.raises(NotSignedIn):
                house.sign_in(name, "wrong")
        with pytest.raises(TooMany) as caught:
            house.sign_in(name, PASSWORD)
        assert caught.value.retry_after == 1
    house.pass_time(timedelta(seconds=1))
    with pytest.raises(NotSignedIn):
        house.sign_in("maria", "wrong")
    with pytest.raises(TooMany) as caught:
        house.sign_in()
    assert caught.value.retry_after == 2
    house.pass_time(timedelta(seconds=2))
    house.sign_in()
    with pytest.raises(NotSignedIn):  # the tries before the right one are forgiven
        house.sign_in("maria", "wrong")


def test_who_guesses_a_password_keeps_its_owner_out_of_nothing(house: House) -> None:
    maria = house.who(house.sign_in())
    for _ in range(500):  # as often as one address may, for days
        try:
            house.sign_in("maria", "wrong", origin="198.51.100.1")
        except TooMany as wait:
            house.pass_time(timedelta(seconds=float(wait.retry_after or 0)))
        except NotSignedIn:
            pass
        else:
            pytest.fail("a wrong password was right")
    house.sign_in(origin="192.0.2.8")  # where she has never been
    house.desk.change_password(maria, PASSWORD, OTHER, origin="198.51.100.1")


def test_many_addresses_that_guess_one_name_make_it_wait_a_minute_and_not_where_its_owner_comes_from(
    house: House,
) -> None:
    house.sign_in()
    for address in range(200):
        house.pass_time(timedelta(minutes=1) if address >= 100 else timedelta())
        with pytest.raises(NotSignedIn):
            house.sign_in("maria", "wrong", origin=f"198.51.100.{address}")
    with pytest.raises(TooMany) as caught:
        house.sign_in(origin="192.0.2.8")
    assert caught.value.retry_after == 60
    house.sign_in()
    with pytest.raises(TooMany):  # the right password took back its own try, and none of the others'
        house.sign_in("maria", "wrong", origin="198.51.100.200")


def test_another_password_forgives_the_wrong_ones_before_it(house: House) -> None:
    for number in range(100):
        with pytest.raises(NotSignedIn):
            house.sign_in("maria", "wrong", origin=f"192.0.2.{number // 5}")
    for address in ("192.0.2.0", "192.0.2.99"):
        with pytest.raises(TooMany):
            house.sign_in(origin=address)
    told = house.people.reset_password("maria", by=LOCAL)
    for address in ("192.0.2.0", "192.0.2.99"):
        house.sign_in(password=told, origin=address)


def test_whoever_holds_a_session_and_not_its_password_waits_too(house: House) -> None:
    maria = house.who(house.sign_in())
    for _ in range(5):
        with pytest.raises(NotSignedIn):
            house.desk.change_password(maria, "wrong", OTHER, origin=None)
    with pytest.raises(TooMany):
        house.desk.change_password(maria, PASSWORD, OTHER, origin=None)
    house.sign_in()


def test_one_address_that_tries_many_names_waits_too_and_others_do_not(house: House) -> None:
    for number in range(20):
        with pytest.raises(NotSignedIn):
            house.sign_in(f"user-{number}", "wrong", origin="198.51.100.1")
    with pytest.raises(TooMany):
        house.sign_in(origin="198.51.100.1")
    house.sign_in(origin="192.0.2.7")


def test_many_people_at_one_address_wait_for_nobodys_right_password(house: House) -> None:
    for _ in range(60):
        house.sign_in(origin="198.51.100.1")
    for number in range(20):
        house.sign_in(origin="198.51.100.1")  # takes back its own try, and none of the wrong ones
        with pytest.raises(NotSignedIn):
            house.sign_in(f"user-{number}", "wrong", origin="198.51.100.1")
    with pytest.raises(TooMany):
        house.sign_in(origin="198.51.100.1")


def test_a_try_that_nobody_judged_is_not_counted(house: House) -> None:
    class Away(Counting):
        """A hasher that breaks, as a database may that is away."""

        def verify(self, kept: str | None, password: str) -> bool:
            raise Unavailable(f"gone: {kept} {len(password)}")

    house.desk.hasher = Away()
    for _ in range(30):
        with pytest.raises(Unavailable):
            house.sign_in()
    house.desk.hasher = house.hasher
    house.sign_in()


def test_a_try_that_finds_all_doors_taken_is_not_counted(house: House) -> None:
    class Slow(Counting):
        """A hasher that does not end before the test lets it."""

        def verify(self, kept: str | None, password: str) -> bool:
            begun.release()
            assert ending.wait(30)
            return super().verify(kept, password)

    begun, ending, house.desk.hasher = Semaphore(0), Event(), Slow()
    with ThreadPoolExecutor() as pool:
        under_way = [pool.submit(house.sign_in, origin=f"192.0.2.{number}") for number in range(4)]
        for _ in under_way:
            assert begun.acquire(timeout=30)
        for _ in range(30):
            with pytest.raises(TooMany, match="at this moment"):
                house.sign_in()
        ending.set()
        assert all(one.result() for one in under_way)
    house.sign_in()


def test_a_session_ends_when_it_is_not_used_and_in_the_end_even_if_it_is(house: House) -> None:
    idle, busy = house.sign_in(), house.sign_in()
    for _ in range(4):
        house.pass_time(DAY)
        house.who(busy)
    assert house.access.authenticate(idle) is None
    for _ in range(25):
        house.pass_time(DAY)
        house.who(busy)
    house.pass_time(DAY)
    assert house.access.authenticate(busy) is None


def test_another_password_wants_the_old_one_and_ends_the_other_sessions(house: House) -> None:
    here, elsewhere = house.sign_in(), house.sign_in()
    maria = house.who(here)
    with pytest.raises(NotSignedIn):
        house.desk.change_password(maria, "wrong", OTHER, origin=None)
    with pytest.raises(InputRejected, match="fewer than 12"):
        house.desk.change_password(maria, PASSWORD, "short", origin=None)
    with pytest.raises(InputRejected, match="is the old one"):
        house.desk.change_password(maria, PASSWORD, PASSWORD, origin=None)
    house.desk.change_password(maria, PASSWORD, OTHER, origin=None)
    assert house.who(here).name == "maria"
    assert house.access.authenticate(elsewhere) is None
    with pytest.raises(NotSignedIn):
        house.sign_in()
    house.sign_in(password=OTHER)


def test_the_first_admin_gets_a_password_that_must_be_changed_and_nobody_gets_a_second(stores: Stores) -> None:
    house = House(stores)
    told = house.people.first_admin()
    assert told
    assert house.people.first_admin() is None
    admin = house.who(house.sign_in("admin", told))
    assert (admin.role, admin.sites, admin.must_change) == (Role.ADMIN, None, True)
    house.desk.change_password(admin, told, OTHER, origin=None)
    assert not house.who(house.sign_in("admin", OTHER)).must_change


def test_a_key_is_somebody_until_it_runs_out_or_is_revoked(house: House) -> None:
    short = house.people.add_key("andon", Role.VIEWER, frozenset({"padova"}), ttl=DAY, by=LOCAL)
    long = house.people.add_key("mes", Role.OPERATOR, None, ttl=None, by=LOCAL)
    found = house.who(short.token)
    assert (found.name, found.kind, found.sites) == ("key andon", PrincipalKind.KEY, frozenset({"padova"}))
    assert house.keys.get(short.key.id).used_at == NOW
    house.pass_time(DAY)
    assert house.access.authenticate(short.token) is None
    assert house.who(long.token).role is Role.OPERATOR
    house.people.revoke_key(long.key.id, by=LOCAL, reason=None)
    assert house.access.authenticate(long.token) is None


def test_when_a_key_was_used_is_noted_once_a_minute(house: House) -> None:
    made = house.people.add_key("andon", Role.VIEWER, None, ttl=None, by=LOCAL)
    for _ in range(5):
        house.who(made.token)
        house.pass_time(timedelta(seconds=10))
    assert house.keys.get(made.key.id).used_at == NOW
    house.pass_time(timedelta(seconds=30))
    house.who(made.token)
    assert house.keys.get(made.key.id).used_at == house.wall


def test_what_somebody_may_changes_at_once(house: House) -> None:
    token = house.sign_in()
    house.who(token)
    house.people.change_user("maria", UserUpdate(role=Role.VIEWER), by=LOCAL)
    assert (house.who(token).role, house.who(token).sites) == (Role.VIEWER, frozenset({"padova"}))
    house.people.change_user("maria", UserUpdate(sites=None, change_sites=True), by=LOCAL)
    assert house.who(token).sites is None
    house.people.reset_password("maria", by=LOCAL)
    assert house.access.authenticate(token) is None


def test_a_change_by_another_process_is_seen_within_seconds(house: House) -> None:
    token = house.sign_in()
    house.who(token)
    house.users.change(house.users.get("maria"), role=Role.ADMIN, sites=None, at=NOW, who="another process")
    assert house.who(token).role is Role.OPERATOR
    house.pass_time(timedelta(seconds=5))
    assert house.who(token).role is Role.ADMIN


def test_an_admin_of_a_site_gives_only_what_they_have(house: House) -> None:
    padovas = Principal("anna", Role.ADMIN, frozenset({"padova"}), PrincipalKind.SESSION)
    house.people.add_user("boss", Role.ADMIN, None, password=PASSWORD, by=LOCAL)
    house.people.add_user("luc", Role.VIEWER, frozenset({"lyon"}), password=PASSWORD, by=LOCAL)
    lyons = house.people.add_key("lyons", Role.VIEWER, frozenset({"lyon"}), ttl=None, by=LOCAL)
    assert [one.name for one in house.people.all_users(padovas)] == ["maria"]
    assert house.people.all_keys(padovas) == []
    for sites in (None, frozenset({"lyon"}), frozenset({"padova", "lyon"})):
        with pytest.raises(Forbidden, match="yours: padova"):
            house.people.add_user("eve", Role.ADMIN, sites, password=None, by=padovas)
        with pytest.raises(Forbidden, match="yours: padova"):
            house.people.add_key("eve", Role.ADMIN, sites, ttl=None, by=padovas)
        with pytest.raises(Forbidden):
            house.people.change_user("maria", UserUpdate(sites=sites, change_sites=True), by=padovas)
    for name in ("boss", "luc", "nobody"):
        with pytest.raises(NotFound, match=f"no user {name}"):
            house.people.remove_user(name, by=padovas)
        with pytest.raises(NotFound, match=f"no user {name}"):
            house.people.reset_password(name, by=padovas)
    with pytest.raises(NotFound):
        house.people.revoke_key(lyons.key.id, by=padovas, reason=None)
    house.people.remove_user("maria", by=padovas)


def test_no_sites_at_all_are_refused_because_they_are_a_mistake(house: House) -> None:
    with pytest.raises(InputRejected, match="at least one site"):
        house.people.add_user("eve", Role.VIEWER, frozenset(), password=None, by=LOCAL)


def test_a_key_can_neither_sign_out_nor_have_a_password(house: House) -> None:
    key = house.who(house.people.add_key("andon", Role.VIEWER, None, ttl=None, by=LOCAL).token)
    with pytest.raises(Conflict):
        house.desk.logout(key)
    with pytest.raises(Conflict):
        house.desk.change_password(key, PASSWORD, OTHER, origin=None)


def test_a_password_kept_at_another_cost_is_kept_anew_when_it_is_used(house: House) -> None:
    before = house.users.get("maria").password
    house.desk.hasher = PasswordHasher(HashCost(rounds=2, kilobytes=64))
    house.sign_in()
    after = house.users.get("maria").password
    assert (before.split("$")[3], after.split("$")[3]) == ("m=64,t=1,p=1", "m=64,t=2,p=1")
    house.sign_in()
