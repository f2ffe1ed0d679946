"""A real browser at a real service: Mosquitto, two learned machines, one agent that tails a log, and Chromium."""

import json
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page, Request, expect, sync_playwright

from alarmcast import Client
from tests.conftest import broker_in, require, wait_until
from tests.page.access import MACHINES
from tests.support.learning_helpers import LEARNING, ended, enrol, load_catalogue, write_history
from tests.support.secured_broker import GuardedMosquitto, guarded_in, has_plugin
from tests.system.conftest import Plant, Process
from wire.enums import Role
from wire.rest.auth import SESSION_COOKIE

FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
expect.set_options(timeout=20_000)  # a bound on waiting for a failure; machines are shared
PASSWORD = "quiet bottles turn slowly"  # noqa: S105 - of people who live for a test
LEARNED = ("padova/filler-0", "padova/filler-1")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Give the first test that needs the stage the time to set it: two machines are learned for it."""
    for item in items:
        if item.path.parent == Path(__file__).parent:
            item.add_marker(pytest.mark.timeout(400))


@dataclass
class Stage:
    """A plant that runs, with two machines learned and the agent of the first one at work."""

    plant: Plant
    history: Path
    log: Path
    agent: Process
    sessions: dict[Role, str]

    def raise_alarm(self, code: int) -> None:
        """Let the first machine raise an alarm now."""
        with self.log.open("a") as log:
            log.write(json.dumps({"timestamp": datetime.now(UTC).isoformat(), "alarm": code}) + "\n")


@pytest.fixture(scope="session")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    require(shutil.which("mosquitto") or Path("/usr/sbin/mosquitto").exists(), "mosquitto")
    folder = tmp_path_factory.mktemp("stage")
    broker = broker_in(folder / "mosquitto")
    broker.start()
    plant = Plant(folder, broker, environment=LEARNING | {"ALARMCAST_WEBHOOK_NETWORKS": "127.0.0.0/8"})
    history, log = folder / "history.csv", folder / "alarms.jsonl"
    log.touch()
    write_history(history)
    agent = plant.agent(LEARNED[0], log)
    try:
        plant.start_service()
        load_catalogue(plant)
        agent.start()
        jobs = [enrol(plant, machine, history) for machine in LEARNED]
        for number in jobs:
            assert ended(plant, number).state in ("promoted", "rejected")
        yield Stage(plant, history, log, agent, {role: signed_in(plant, role) for role in Role})
    finally:
        for process in plant.processes:
            if process.running is not None:
                process.kill()
        broker.kill()


def signed_in(plant: Plant, role: Role) -> str:
    """Make a user of a role and return the token of a session of theirs."""
    name = f"page-{role.value}"
    if name not in {one.name for one in plant.api.users.list().users}:
        plant.api.users.add(name, role=role, password=PASSWORD)
    with Client(plant.address) as visitor:
        return visitor.session.login(name, PASSWORD).token


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Debian's Chromium; a module's own, because Playwright's loop must not run beside other tests' loops.

    Its headless shell has no window of its own to draw, which takes as much time as the pages.
    """
    program = shutil.which("chromium-headless-shell") or shutil.which("chromium")
    require(program, "chromium")
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=program, args=list(FLAGS))
        yield chromium
        chromium.close()


@dataclass
class Tabs:
    """Opens pages and remembers what went wrong in them."""

    browser: Browser
    address: str
    sessions: dict[Role, str]
    contexts: list[BrowserContext] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)

    def __call__(
        self,
        path: str,
        *,
        width: int = 1400,
        height: int = 900,
        dark: bool = False,
        role: Role | None = Role.ADMIN,
    ) -> Page:
        """Open a page of the service in a fresh browser profile, as somebody of a role, or as a stranger."""
        context = self.browser.new_context(
            viewport={"width": width, "height": height}, color_scheme="dark" if dark else "light"
        )
        self.contexts.append(context)
        if role is not None:
            cookie = {"name": SESSION_COOKIE, "value": self.sessions[role], "url": self.address}
            context.add_cookies([cookie])  # type: ignore[list-item]  # a plain dict
        page = context.new_page()
        page.on("console", self._heard)
        page.on("pageerror", lambda error: self.complaints.append(f"{path}: {error}"))
        page.on("requestfailed", self._failed)
        page.on("request", lambda request: self._asked(request.url))
        page.goto(f"{self.address}{path}")
        return page

    def _heard(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            self.complaints.append(message.text)

    def _failed(self, request: Request) -> None:
        if request.failure != "net::ERR_ABORTED":  # which is what leaving a page does to what it still waits for
            self.complaints.append(f"{request.url}: {request.failure}")

    def _asked(self, url: str) -> None:
        """A plant has no internet: whatever a page needs comes from the service."""
        own = (self.address, self.address.replace("http", "ws"), "data:", "blob:")
        if not url.startswith(own):
            self.complaints.append(f"asked for {url}")


@pytest.fixture
def page_at(stage: Stage, browser: Browser) -> Iterator[Callable[..., Page]]:
    """Opens pages at given paths; a test fails if a browser's console had anything to complain about."""
    tabs = Tabs(browser, stage.plant.address, stage.sessions)
    yield tabs
    for context in tabs.contexts:
        context.close()
    assert tabs.complaints == []


@pytest.fixture(scope="session")
def guarded_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GuardedMosquitto]:
    require(has_plugin(), "mosquitto with its dynamic-security plugin")
    broker = guarded_in(tmp_path_factory.mktemp("guarded") / "mosquitto")
    broker.start()
    yield broker
    broker.kill()


@pytest.fixture(scope="session")
def guarded_plant(tmp_path_factory: pytest.TempPathFactory, guarded_broker: GuardedMosquitto) -> Iterator[Plant]:
    """A plant whose broker asks machines who they are, with machines at two sites and nothing learned."""
    plant = Plant(tmp_path_factory.mktemp("guarded-plant"), guarded_broker, environment=guarded_broker.environment)
    plant.start_service()
    wait_until(lambda: plant.api.health.status().broker.secured, "the service knows that the broker is guarded")
    for machine in MACHINES:
        plant.api.enrolment.enrol(machine, time_zone="Europe/Rome")
    yield plant
    plant.service.kill()


@pytest.fixture
def access_at(guarded_plant: Plant, browser: Browser) -> Iterator[Callable[..., Page]]:
    """Opens the access page as whoever has a session's token, by default as an admin of all sites."""
    admin = signed_in(guarded_plant, Role.ADMIN)
    opened: list[Tabs] = []

    def open_page(token: str = admin, *, width: int = 1400, dark: bool = False) -> Page:
        opened.append(Tabs(browser, guarded_plant.address, {Role.ADMIN: token}))
        return opened[-1]("/access", width=width, dark=dark)

    yield open_page
    for tabs in opened:
        for context in tabs.contexts:
            context.close()
        assert tabs.complaints == []
