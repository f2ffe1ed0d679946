"""Users and keys over REST: log in and out, cookies, other sites' pages, limits, headers."""

import asyncio
import logging
import re
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import httpx
import pytest

from alarmcast import Conflict, Forbidden, NotFound, NotSignedIn, Rejected, TooLarge, TooMany
from service.app.service import Service
from service.app.stores import Stores
from service.auth.authenticator import LOCAL
from service.auth.login import LoginThrottle
from service.auth.models import Session
from service.auth.password import HashCost, PasswordHasher
from service.auth.store import SessionStore
from service.settings import Settings
from tests.service.auth.conftest import PASSWORD
from tests.service.conftest import NOW
from tests.support.api_client import Visitor, problem, visitor
from wire.enums import PrincipalKind, Role
from wire.rest.auth import SESSION_COOKIE

SAME_ORIGIN = {"Sec-Fetch-Site": "same-origin"}


@pytest.mark.usefixtures("champion", "filler")
def test_a_signed_in_user_is_the_author_and_a_program_may_name_a_person(
    service: Service, admin: Visitor, maria: Visitor
) -> None:
    end = NOW + timedelta(days=1)
    for by in (None, "maria"):
        assert maria.acknowledgements.acknowledge("padova/filler-1", 139, by=by).actor == "maria"
        assert maria.shelves.shelve("padova/filler-1", 139, minutes=5, reason="x", by=by).actor == "maria"
        assert maria.maintenance.create("padova", until=end, reason="x", by=by).actor == "maria"
    for ask in (
        lambda: maria.acknowledgements.acknowledge("padova/filler-1", 26, by="anna"),
        lambda: maria.shelves.shelve("padova/filler-1", 26, minutes=5, reason="x", by="anna"),
        lambda: maria.maintenance.create("padova", until=end, reason="x", by="anna"),
    ):
        with pytest.raises(Rejected, match="logged in as maria"):
            ask()
    key = admin.keys.add("andon", role=Role.OPERATOR).key
    andon = Visitor(service, key)
    assert andon.acknowledgements.acknowledge("padova/filler-1", 26, by="anna").actor == "anna (key andon)"


def test_whoever_signs_in_has_a_cookie_that_no_script_reads_and_a_token_for_programs(
    service: Service, admin: Visitor, stranger: Visitor
) -> None:
    admin.users.add("maria", role=Role.OPERATOR, sites=["padova"], password=PASSWORD)
    answer = stranger.ask("POST", "/v1/session", json={"name": "maria", "password": PASSWORD})
    assert answer.status_code == 200
    cookie = answer.headers["set-cookie"]
    assert re.fullmatch(rf"{SESSION_COOKIE}=acs_\w+; HttpOnly; Max-Age=2592000; Path=/; SameSite=strict", cookie)
    assert stranger.session.me().model_dump() == {
        "name": "maria", "role": Role.OPERATOR, "sites": ["padova"], "kind": PrincipalKind.SESSION,
        "must_change": False,
    }  # fmt: skip
    assert Visitor(service, answer.json()["token"]).session.me() == stranger.session.me()


def test_over_https_the_cookie_stays_there_and_so_does_the_browser(service: Service, admin: Visitor) -> None:
    admin.users.add("maria", password=PASSWORD)
    answer = asked(service, "POST", "https://here/v1/session", json={"name": "maria", "password": PASSWORD})
    assert "; Secure" in answer.headers["set-cookie"]
    assert answer.headers["strict-transport-security"] == "max-age=31536000"
    assert "strict-transport-security" not in asked(service, "GET", "http://here/livez").headers


def test_a_wrong_name_and_a_wrong_password_get_the_same_answer(admin: Visitor, stranger: Visitor) -> None:
    admin.users.add("maria", password=PASSWORD)
    known, unknown = (
        stranger.ask("POST", "/v1/session", json={"name": name, "password": "wrong"})
        for name in ("maria", "nobody")
    )
    assert problem(known, 401) == problem(unknown, 401)
    assert "set-cookie" not in known.headers


def test_after_five_wrong_passwords_the_next_must_wait(
    service: Service, admin: Visitor, stranger: Visitor
) -> None:
    service.auth.login.throttle = LoginThrottle(lambda: 0.0)  # a slow computer must not outwait the throttle
    admin.users.add("maria", password=PASSWORD)
    for _ in range(5):
        with pytest.raises(NotSignedIn):
            stranger.session.login("maria", "wrong")
    with pytest.raises(TooMany) as caught:
        stranger.session.login("maria", PASSWORD)
    assert caught.value.retry_after == 1


def test_an_admin_who_gives_another_password_ends_the_wait(admin: Visitor, stranger: Visitor) -> None:
    admin.users.add("maria", password=PASSWORD)
    for _ in range(5):
        with pytest.raises(NotSignedIn):
            stranger.session.login("maria", "wrong")
    stranger.session.login("maria", admin.users.reset_password("maria").password)


def test_signing_out_ends_the_session_everywhere(service: Service, maria: Visitor) -> None:
    token = maria.http.cookies[SESSION_COOKIE]
    maria.session.logout()
    assert SESSION_COOKIE not in maria.http.cookies
    with pytest.raises(NotSignedIn):
        Visitor(service, token).session.me()


@pytest.mark.parametrize("odd", ['x={"a":1}', "a b=c", "=", "x;y", 'x="unfinished', "käse=1", "a[0]=,;"])
def test_odd_cookies_of_other_services_on_the_same_host_sign_nobody_out(
    service: Service, maria: Visitor, odd: str
) -> None:
    own = f"{SESSION_COOKIE}={maria.http.cookies[SESSION_COOKIE]}"
    for brought in (f"{odd}; {own}", f"{own}; {odd}"):
        answer = asked(service, "GET", "http://here/v1/me", headers={"Cookie": brought.encode()})
        assert (answer.status_code, answer.json().get("name")) == (200, "maria")


def test_a_one_time_password_opens_nothing_until_it_is_changed(admin: Visitor, stranger: Visitor) -> None:
    told = admin.users.add("maria").password
    assert told
    assert stranger.session.login("maria", told).must_change
    assert stranger.session.me().must_change
    with pytest.raises(Forbidden, match="must be changed first"):
        stranger.fleet.overview()
    with pytest.raises(Rejected, match="fewer than 12"):
        stranger.session.change_password(told, "short")
    stranger.session.change_password(told, PASSWORD)
    stranger.fleet.overview()
    again = admin.users.reset_password("maria").password
    with pytest.raises(NotSignedIn):
        stranger.fleet.overview()
    assert stranger.session.login("maria", again).must_change


@pytest.mark.parametrize(
    "headers",
    [
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://here.evil.example"},
    ],
)
def test_another_sites_page_cannot_order_anything_in_a_visitors_name(
    maria: Visitor, admin: Visitor, headers: dict[str, str]
) -> None:
    admin.enrolment.enrol("padova/filler-1")
    wish = {"site": "padova", "until": "2030-01-01T00:00:00Z", "reason": "oil"}
    problem(maria.ask("POST", "/v1/maintenance", json=wish, headers=headers), 403)
    problem(maria.ask("DELETE", "/v1/session", headers=headers), 403)
    problem(maria.ask("POST", "/v1/session", json={"name": "maria", "password": PASSWORD}, headers=headers), 403)
    assert maria.ask("POST", "/v1/maintenance", json=wish, headers=SAME_ORIGIN).status_code == 201
    assert maria.ask("POST", "/v1/maintenance", json=wish, headers={"Origin": "http://here"}).status_code == 201


def test_no_other_origin_is_allowed_to_read(maria: Visitor) -> None:
    answer = maria.ask("GET", "/v1/fleet", headers={"Origin": "https://evil.example"})
    assert not [name for name in answer.headers if name.startswith("access-control")]


def test_every_answer_says_what_a_browser_may_do_with_it(admin: Visitor, stranger: Visitor) -> None:
    for answer in (
        admin.ask("GET", "/v1/fleet"),
        admin.ask("GET", "/v1/alarms.csv"),
        admin.ask("GET", "/v1/nothing"),
        stranger.ask("GET", "/v1/fleet"),
        stranger.ask("GET", "/livez"),
    ):
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["referrer-policy"] == "same-origin"
        assert answer.headers["x-frame-options"] == "DENY"
        assert answer.headers["content-security-policy"] == "default-src 'none'; frame-ancestors 'none'"
        assert answer.headers["cache-control"] == "no-store"
    docs = admin.ask("GET", "/docs").headers["content-security-policy"]
    assert "default-src 'self'" in docs
    assert "frame-ancestors 'none'" in docs


def test_strangers_learn_whether_it_is_ready_and_not_why(admin: Visitor, stranger: Visitor) -> None:
    assert admin.health.ready().errors
    told = stranger.health.ready()
    assert (told.ready, told.errors) == (False, {})


def test_who_asks_too_often_is_told_when_to_go_on_and_others_are_not_kept(
    settings: Settings, stores: Stores
) -> None:
    slow = Service(settings.model_copy(update={"rate_per_second": 0.01, "rate_burst": 10}), stores)
    busy, other = visitor(slow, Role.VIEWER), visitor(slow, Role.VIEWER)
    for _ in range(10):
        busy.session.me()
    with pytest.raises(TooMany) as caught:
        busy.session.me()
    assert caught.value.retry_after is not None
    assert 1 <= caught.value.retry_after <= 100
    other.session.me()
    nobody = visitor(slow, None)
    assert [nobody.ask("GET", "/v1/fleet").status_code for _ in range(2)] == [401, 429]
    for _ in range(30):
        Visitor(slow, slow.key).session.me()  # the service's own people are not limited


@dataclass(frozen=True)
class CountedSessions(SessionStore):
    """The real sessions, with a note of every one that was looked for."""

    wanted: list[str] = field(default_factory=list)

    def find(self, prefix: str) -> Session | None:
        self.wanted.append(prefix)
        return super().find(prefix)


@pytest.fixture
def slow(settings: Settings, stores: Stores) -> Service:
    """A service that lets a stranger ask once, and then hardly ever again."""
    made = Service(settings.model_copy(update={"rate_per_second": 0.01, "rate_burst": 10}), stores)
    made.auth.authenticator.sessions = CountedSessions(stores.database)
    return made


def test_strangers_who_ask_too_often_cost_no_look_at_the_database(slow: Service) -> None:
    sessions = slow.auth.authenticator.sessions
    assert isinstance(sessions, CountedSessions)
    forged = [Visitor(slow, f"acs_{number:012x}_forged").ask("GET", "/v1/me").status_code for number in range(5)]
    assert (forged, len(sessions.wanted)) == ([401, 429, 429, 429, 429], 1)


def test_strangers_of_one_ipv6_network_ask_as_often_as_one(slow: Service) -> None:
    async def ask(address: str) -> int:
        transport = httpx.ASGITransport(slow.app, client=(address, 1))
        async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:
            return (await client.get("/v1/me")).status_code

    addresses = ("2001:db8::1", "2001:db8::2", "2001:db8:0:1::1", "203.0.113.7", "::ffff:203.0.113.7")
    assert [asyncio.run(ask(one)) for one in addresses] == [401, 429, 401, 401, 429]


def test_strangers_at_an_address_starve_neither_probes_nor_those_who_are_known_there(slow: Service) -> None:
    slow.auth.login.hasher = PasswordHasher(HashCost(rounds=1, kilobytes=64))
    slow.auth.users.add_user("maria", Role.VIEWER, None, password=PASSWORD, by=LOCAL)
    token = slow.auth.login.login("maria", PASSWORD, origin=None).token
    keys = [visitor(slow, Role.VIEWER) for _ in range(3)]
    assert [key.ask("GET", "/v1/me").status_code for key in keys] == [200, 200, 200]  # they took from no stranger
    nobody = Visitor(slow, None)
    assert [nobody.ask("GET", "/v1/me").status_code for _ in range(2)] == [401, 429]
    assert [nobody.ask("GET", path).status_code for path in ("/livez", "/readyz")] == [200, 503]
    maria = Visitor(slow, token)
    slow.auth.authenticator.invalidate()
    assert [one.ask("GET", "/v1/me").status_code for one in (maria, *keys)] == [200] * 4
    Visitor(slow, slow.key).users.remove("maria")
    sessions = slow.auth.authenticator.sessions
    assert isinstance(sessions, CountedSessions)
    before = len(sessions.wanted)
    assert [maria.ask("GET", "/v1/me").status_code for _ in range(3)] == [429] * 3
    assert len(sessions.wanted) == before + 1  # a session that was good until now is looked for once more


def test_a_body_that_is_too_large_is_refused_whether_it_says_so_or_not(settings: Settings, stores: Stores) -> None:
    service = Service(settings.model_copy(update={"body_max_mb": 1}), stores)
    admin = Visitor(service, service.key)
    with pytest.raises(TooLarge):
        admin.catalogue.add(b"x" * 1_000_001)

    async def endless() -> AsyncIterator[bytes]:
        for _ in range(1000):
            yield b"x" * 10_000

    headers = {"Authorization": f"Bearer {service.key}", "Content-Type": "text/csv"}
    answer = asked(service, "POST", "http://here/v1/catalogue", content=endless(), headers=headers)
    assert "at most 1,000,000 bytes" in problem(answer, 413)["detail"]
    stranger = asked(service, "POST", "http://here/v1/session", content=endless())
    assert "at most 16,384 bytes" in problem(stranger, 413)["detail"]


def test_users_are_listed_changed_and_removed(admin: Visitor) -> None:
    admin.users.add("maria", role=Role.OPERATOR, sites=["padova"], password=PASSWORD)
    admin.users.add("boss", role=Role.ADMIN)
    assert [one.name for one in admin.users.list().users] == ["boss", "maria"]
    assert admin.users.change("maria", role=Role.VIEWER).sites == ["padova"]
    assert admin.users.change("maria", sites=None).role is Role.VIEWER
    assert admin.users.change("maria", sites=["lyon", "graz"]).sites == ["graz", "lyon"]
    with pytest.raises(Conflict, match="add another first"):
        admin.users.remove("boss")
    admin.users.remove("maria")
    with pytest.raises(NotFound):
        admin.users.remove("maria")
    with pytest.raises(Conflict):
        admin.users.add("boss")


@pytest.mark.parametrize(
    "wish",
    [
        {"name": "Maria"}, {"name": ""}, {"name": "a b"}, {"name": "../x"}, {"name": "maria", "role": "god"},
        {"name": "maria", "sites": []}, {"name": "maria", "sites": ["No Site"]}, {"name": "maria", "extra": 1},
        {"name": "maria", "password": "short"}, {"name": "m\x00"}, {},
    ],
)  # fmt: skip
def test_a_user_who_cannot_be_is_refused(admin: Visitor, wish: dict[str, Any]) -> None:
    problem(admin.ask("POST", "/v1/users", json=wish), 422)
    assert admin.users.list().users == []


def test_a_password_is_never_told_again_nor_written_into_the_log(
    admin: Visitor, stranger: Visitor, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    admin.users.add("maria", password=PASSWORD)
    key = admin.keys.add("andon").key
    with pytest.raises(NotSignedIn):
        stranger.session.login("maria", f"{PASSWORD} wrong")
    token = stranger.session.login("maria", PASSWORD).token
    answer = stranger.ask("POST", "/v1/session", json={"name": "maria", "password": [PASSWORD]})
    told = [answer.text, admin.ask("GET", "/v1/users").text, admin.ask("GET", "/v1/keys").text, caplog.text]
    told.append(admin.ask("GET", "/v1/audit").text)
    for secret in (PASSWORD, token, key, key.rpartition("_")[2], "argon2"):
        assert not [one for one in told if secret in one]


def test_a_key_is_shown_once_and_says_when_it_was_used(service: Service, admin: Visitor) -> None:
    made = admin.keys.add("andon", role=Role.VIEWER, sites=["padova"], days=1)
    assert made.key.startswith(f"ack_{made.prefix}_")
    assert (made.expires_at, made.used_at) != (None, None)
    board = Visitor(service, made.key)
    assert (board.session.me().name, board.session.me().sites) == ("key andon", ["padova"])
    (listed,) = admin.keys.list().keys
    assert listed.used_at is not None
    assert made.key.rpartition("_")[2] not in listed.model_dump_json()
    with pytest.raises(Conflict, match="revoke that one first"):
        admin.keys.add("andon")
    with pytest.raises(Conflict, match="key"):
        board.session.logout()
    admin.keys.revoke(made.id, reason="lost")
    with pytest.raises(NotSignedIn):
        board.session.me()
    with pytest.raises(NotFound):
        admin.keys.revoke(made.id)


def asked(service: Service, method: str, url: str, **more: Any) -> httpx.Response:
    """Ask with a scheme or a body that the client would not send."""

    async def ask() -> httpx.Response:
        async with httpx.AsyncClient(transport=httpx.ASGITransport(service.app)) as client:
            return await client.request(method, url, **more)

    return asyncio.run(ask())
