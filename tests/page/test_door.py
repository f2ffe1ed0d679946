"""The pages' door at a real service, knocked at by programs: what a browser would not do is done here."""

import asyncio
import json
import re
import socket
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from uuid import uuid4

import httpx
import pytest
import socketio

from alarmcast import Client
from tests.conftest import Mosquitto
from tests.system.conftest import Plant
from wire.enums import Role
from wire.rest.auth import SESSION_COOKIE

PASSWORD = "quiet bottles turn slowly"  # noqa: S105 - of people who live for a test
STALE = {SESSION_COOKIE: "acs_000000000000_forged"}


@pytest.fixture(scope="module")
def plant(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Plant]:
    """A service that believes what is forwarded, lets strangers ask little, and has no broker to talk to."""
    folder: Path = tmp_path_factory.mktemp("door")
    limits = {"ALARMCAST_RATE_PER_SECOND": "0.02", "ALARMCAST_RATE_BURST": "200"}
    plant = Plant(folder, Mosquitto(folder), environment={"ALARMCAST_TRUSTED_PROXIES": "127.0.0.1", **limits})
    plant.start_service()
    yield plant
    plant.service.kill()


def knock(plant: Plant, path: str, origin: str, **more: dict[str, str]) -> httpx.Response:
    """Ask once, as a proxy does for somebody at another address."""
    return httpx.get(f"{plant.address}{path}", headers={"X-Forwarded-For": origin}, **more)  # type: ignore[arg-type]


def test_who_knocks_too_often_with_a_session_that_is_over_is_told_to_wait_and_nobody_else_is(plant: Plant) -> None:
    answers = [knock(plant, "/", "203.0.113.7", cookies=STALE) for _ in range(25)]
    assert (answers[0].status_code, answers[-1].status_code) == (303, 429)
    assert answers[-1].text == "Too many requests; wait and continue more slowly."
    assert int(answers[-1].headers["Retry-After"]) > 0
    assert knock(plant, "/", "203.0.113.8", cookies=STALE).status_code == 303
    assert knock(plant, "/livez", "127.0.0.1").status_code == 200
    assert "Traceback" not in plant.service.words()


def test_pages_are_drawn_for_strangers_at_their_pace_and_for_those_who_are_known_at_any(plant: Plant) -> None:
    known = {SESSION_COOKIE: viewer(plant, "carla")}
    answers = [knock(plant, "/sign-in", "203.0.113.20").status_code for _ in range(25)]
    assert (answers[0], answers[-1]) == (200, 429)
    refused = knock(plant, "/no/such/page", "203.0.113.20")
    assert (refused.status_code, refused.headers["x-frame-options"]) == (429, "DENY")
    assert int(refused.headers["Retry-After"]) > 0
    for _ in range(3):
        assert knock(plant, "/alarms", "203.0.113.20", cookies=known).status_code == 200
        assert knock(plant, "/static/alarmcast.css", "203.0.113.20").status_code == 200
        assert knock(plant, "/livez", "203.0.113.20").status_code == 200
    missing = knock(plant, "/_nicegui/nothing.js", "203.0.113.20")
    assert (missing.status_code, missing.headers["content-type"]) == (
        404,
        "application/json",
    )  # and no page is drawn


def connected(plant: Plant, origin: str, query: str, **more: str) -> int:
    """Try to open a page's websocket; return the status of the answer, and hang up."""
    target = httpx.URL(plant.address)
    headers = {"Host": target.netloc.decode(), "X-Forwarded-For": origin, "Upgrade": "websocket", **more}
    headers |= {"Connection": "Upgrade", "Sec-WebSocket-Version": "13", "Sec-WebSocket-Key": "A" * 22 + "=="}
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    with socket.create_connection((target.host, target.port or 80), 10) as opened:
        opened.sendall(
            f"GET /_nicegui_ws/socket.io/?EIO=4&transport=websocket{query} HTTP/1.1\r\n{lines}\r\n".encode()
        )
        return int(opened.recv(1000).split(b" ")[1])


def test_a_stranger_connects_only_the_form_that_was_drawn_for_them(plant: Plant) -> None:
    drawn = re.search(r"client_id\W+([0-9a-f-]{36})", knock(plant, "/sign-in", "203.0.113.30").text)
    assert drawn
    assert connected(plant, "203.0.113.30", f"&client_id={drawn[1]}") == 101
    assert connected(plant, "203.0.113.30", "") == 403
    assert connected(plant, "203.0.113.30", f"&client_id={uuid4()}") == 403
    session = f"{SESSION_COOKIE}={viewer(plant, 'dora')}"
    assert connected(plant, "203.0.113.30", "", Cookie=session) == 101
    answers = [connected(plant, "203.0.113.30", "") for _ in range(25)]
    assert answers[-1] == 429


@dataclass
class Stubborn:
    """An open fleet page that keeps its connection and goes nowhere, whatever it is asked to do."""

    connection: socketio.AsyncClient = field(default_factory=lambda: socketio.AsyncClient(reconnection=False))
    words: list[str] = field(default_factory=list)
    news: asyncio.Event = field(default_factory=asyncio.Event)

    async def open(self, plant: Plant, token: str) -> None:
        async with httpx.AsyncClient(cookies={SESSION_COOKIE: token}) as http:
            page = (await http.get(plant.address)).text
        found = re.search(r"client_id\W+([0-9a-f-]{36})", page)
        assert found, page
        query = {"client_id": found[1], "document_id": uuid4(), "tab_id": uuid4(), "next_message_id": 0}
        words = "&".join(f"{name}={value}" for name, value in query.items())
        for name in ("update", "run_javascript", "run_method"):
            self.connection.on(name, self._hear)
        address = f"{plant.address}?{words}&implicit_handshake=true"
        path, cookie = "/_nicegui_ws/socket.io", {"Cookie": f"{SESSION_COOKIE}={token}"}
        await self.connection.connect(address, cookie, socketio_path=path, transports=["websocket"])

    async def hears(self, word: str) -> None:
        async with asyncio.timeout(60):
            while not self.has_heard(word):
                self.news.clear()
                await self.news.wait()

    def has_heard(self, word: str) -> bool:
        return any(word in one for one in self.words)

    def _hear(self, *told: object) -> None:
        self.words.append(json.dumps(told))
        self.news.set()


def viewer(plant: Plant, name: str) -> str:
    """Make somebody of two sites and return the token of their session."""
    plant.api.users.add(name, role=Role.VIEWER, sites=["padova", "lyon"], password=PASSWORD)
    with Client(plant.address) as visitor:
        return visitor.session.login(name, PASSWORD).token


async def enrol(plant: Plant, machine: str) -> str:
    await asyncio.to_thread(plant.api.enrolment.enrol, machine)
    return machine.partition("/")[2]


@pytest.mark.parametrize(
    ("change", "way"),
    [
        (lambda plant, name: plant.api.users.change(name, sites=["padova"]), "location.reload()"),
        (lambda plant, name: plant.api.users.change(name, role=Role.OPERATOR), "location.reload()"),
        (lambda plant, name: plant.api.users.reset_password(name), "/sign-in"),
        (lambda plant, name: plant.api.users.remove(name), "/sign-in"),
    ],
    ids=["other-sites", "another-role", "password-reset", "removed"],
)
def test_who_may_not_see_a_page_any_more_is_told_nothing_even_if_their_browser_stays(
    plant: Plant, change: Callable[[Plant, str], object], way: str
) -> None:
    name, colleague = f"maria-{uuid4().hex[:6]}", f"anna-{uuid4().hex[:6]}"

    async def watch() -> None:
        marias, annas = Stubborn(), Stubborn()
        await marias.open(plant, await asyncio.to_thread(viewer, plant, name))
        await annas.open(plant, await asyncio.to_thread(viewer, plant, colleague))
        for page in (marias, annas):
            await page.hears(await enrol(plant, f"lyon/before-{name}"))
        await asyncio.to_thread(change, plant, name)
        await marias.hears(way)
        machine, told = "", True
        async with asyncio.timeout(30):
            while told:  # the browser has a second to go by itself
                last, machine = machine, await enrol(plant, f"lyon/after-{uuid4().hex[:6]}")
                await annas.hears(machine)
                told = marias.has_heard(last)
        assert marias.connection.connected
        heard = len(marias.words)
        for _ in range(3):
            await annas.hears(await enrol(plant, f"lyon/later-{uuid4().hex[:6]}"))
        assert len(marias.words) == heard
        for page in (marias, annas):
            await page.connection.disconnect()

    asyncio.run(watch())
    assert "Traceback" not in plant.service.words()


def test_nobody_keeps_a_page_by_asking_so_often_that_it_cannot_be_looked_whether_they_may(plant: Plant) -> None:
    name = f"maria-{uuid4().hex[:6]}"

    async def ask(token: str) -> None:
        async with httpx.AsyncClient(headers={"Authorization": f"Bearer {token}"}) as http:
            while True:
                answer = await http.get(f"{plant.address}/v1/me")
                await asyncio.sleep(0.2 if answer.status_code == 429 else 0)

    async def watch() -> None:
        page, token = Stubborn(), await asyncio.to_thread(viewer, plant, name)
        await page.open(plant, token)
        asking = asyncio.create_task(ask(token))
        await page.hears("location.reload()")
        asking.cancel()
        await page.connection.disconnect()

    asyncio.run(watch())
