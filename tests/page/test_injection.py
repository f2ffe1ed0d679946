"""Whatever others may write is shown as text: names, alarm texts, reasons, refused bytes, what a webhook answered.

The database is filled before the service starts, with words that no API would let in as well: a page must not
depend on who wrote them. Who knocks is named by a topic, and those are letters and digits.
"""

import shutil
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.parse import quote
from uuid import uuid4

import pytest
from playwright.sync_api import Browser, Dialog, Page, expect
from sqlalchemy import insert, update

from service.app.configuration import load_settings
from service.app.stores import Stores, open_stores
from service.database import tables
from service.machines.catalogue import CatalogueEntry
from service.machines.events import EventWrite, QuarantineRow
from tests.conftest import broker_in, require, wait_until
from tests.page.conftest import Tabs, signed_in
from tests.service.conftest import FILLER, connect_agent, enrolled, raise_alarms, small_model
from tests.system.conftest import Plant
from wire.enums import Role
from wire.identity import MachineId
from wire.rest.auth import SESSION_COOKIE
from wire.timestamps import to_us

# Markup, a script, a template of the page's own framework, an attribute's end and a format string.
EVIL = "<img src=x onerror=alert(1)><script>alert(2)</script>{{7*7}}\"' onmouseover=alert(3) ${7*7} %s"
NAME = f"name {EVIL}"
TEXT = f"text {EVIL}"


def fill(stores: Stores) -> None:
    """Let every place that holds somebody's words hold these."""
    now = datetime.now(UTC)
    at = to_us(now)
    codes = [CatalogueEntry(code, f"{TEXT} {code}", "high", target=True) for code in (139, 26, 137)]
    stores.catalogue.merge(codes)
    filler = enrolled(stores.enrolments, FILLER, name=NAME, time_zone="Europe/Rome")
    failed = enrolled(stores.enrolments, MachineId("padova", "failed"), name=f"failed {EVIL}")
    connect_agent(stores, filler, at=now)
    alarms = [(now - timedelta(minutes=7 * n), (139, 26, 137)[n % 3]) for n in range(1, 400)]
    raise_alarms(stores, filler, *alarms)
    report = {"summary": f"summary {EVIL}", "verdict": {"accepted": True, "reasons": [f"verdict {EVIL}"]}}
    stores.versions.add_and_promote(small_model(), report=report, at=now - timedelta(days=1))
    refused = [
        QuarantineRow(filler.row_id, f"topic {EVIL}", f"reason {EVIL}", f"detail {EVIL}", f"body {EVIL}".encode()),
        QuarantineRow(None, f"topic {EVIL}", "not_json", f"detail {EVIL}", f"body {EVIL}".encode()),
    ]
    stores.events.commit(EventWrite(at, quarantined=refused))
    day = 86_400_000_000
    quiet = {"from_us": at - day, "until_us": at + day, "actor": f"who {EVIL}", "reason": f"because {EVIL}"}
    notice = {"code": 139, "text": TEXT, "severity": "high", "model_version": f"v {EVIL}", "opened_us": at}
    notice |= {"as_of_us": at, "horizon_end_us": at + day, "probability": 0.7, "threshold": 0.5}
    notice |= {"webhook_id": 0, "held_back": False, "similar_right": 4, "similar_total": 5}
    with stores.database.write() as connection:
        connection.execute(
            update(tables.machines)
            .where(tables.machines.c.id == failed.row_id)
            .values(state="failed", reason=f"failure {EVIL}")
        )
        ended = {"state": "failed", "finished_us": at, "message": f"message {EVIL}"}
        connection.execute(update(tables.jobs).where(tables.jobs.c.machine_id == failed.row_id).values(**ended))
        notes = {
            "skipped": 3,
            "last_skipped": f"row {EVIL}",
            "warning": f"warning {EVIL}",
            "duplicate": f"rival {EVIL}",
        }
        notes |= {"last_skipped_us": at, "warning_us": at, "duplicate_us": at, "state_us": at}
        connection.execute(update(tables.agents).values(agent=f"agent {EVIL}", **notes))
        connection.execute(insert(tables.shelved_alarms).values(machine_id=filler.row_id, code=26, **quiet))
        connection.execute(insert(tables.maintenance_windows).values(site="padova", machine="failed", **quiet))
        connection.execute(insert(tables.notifications).values(machine_id=filler.row_id, **notice))
        known = {"machine_id": filler.row_id, "code": 139, "notification_id": 1, "at_us": at}
        connection.execute(
            insert(tables.acknowledgements).values(**known, actor=f"who {EVIL}", note=f"note {EVIL}")
        )
        given = {"answer": "wrong", "actor": f"who {EVIL}", "note": f"remark {EVIL}"}
        connection.execute(insert(tables.answers).values(**known, **given))
        response = {"cause": f"cause {EVIL}", "consequence": f"consequence {EVIL}", "action": f"action {EVIL}"}
        connection.execute(update(tables.catalogue).values(**response, link="javascript:alert(5)//"))
        hook = {"secret": "s" * 32, "severity": "low", "enabled": False, "created_us": at}
        trouble = f"trouble {EVIL}"
        connection.execute(insert(tables.webhooks).values(url="javascript:alert(4)//", error=trouble, **hook))
        sent = {
            "notification_id": 1,
            "webhook_id": 1,
            "key": uuid4(),
            "created_us": at,
            "attempts": 1,
        }
        connection.execute(insert(tables.deliveries).values(**sent, response=f"answer {EVIL}", abandoned_us=at))
        deed = {"at_us": at, "actor": f"who {EVIL}", "action": f"action {EVIL}"}
        deed |= {"subject": f"subject {EVIL}", "reason": f"why {EVIL}", "client_ip": f"origin {EVIL}"}
        connection.execute(insert(tables.audit_log).values(**deed))
        key = {"name": f"key {EVIL}", "prefix": "0" * 12, "digest": "0" * 64, "role": "viewer", "created_us": at}
        connection.execute(insert(tables.api_keys).values(**key, created_by=f"maker {EVIL}"))


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Plant]:
    require(shutil.which("mosquitto") or Path("/usr/sbin/mosquitto").exists(), "mosquitto")
    folder = tmp_path_factory.mktemp("hostile")
    broker = broker_in(folder / "mosquitto")
    broker.start()
    plant = Plant(folder, broker)
    with open_stores(load_settings(data_dir=plant.data)) as stores:
        fill(stores)
    try:
        plant.start_service()
        wait_until(plant.is_ready, "the service is ready", 60)
        yield plant
    finally:
        plant.service.kill()
        broker.kill()


@pytest.fixture
def opened(hostile: Plant, browser: Browser) -> Iterator[Callable[..., Page]]:
    """Opens pages; a dialog, an error in the console, a request elsewhere or an element of ours fails the test."""
    tabs = Tabs(browser, hostile.address, {Role.ADMIN: signed_in(hostile, Role.ADMIN)})
    pages: list[Page] = []

    def dismissed(dialog: Dialog) -> None:
        tabs.complaints.append(f"a script ran: {dialog.message}")
        dialog.dismiss()

    def open_page(path: str) -> Page:
        page = tabs(path)
        page.on("dialog", dismissed)
        pages.append(page)
        return page

    yield open_page
    for page in pages:
        injected = page.locator("img[src='x'], [onerror], [onmouseover], a[href^='javascript:']")
        assert injected.count() == 0, page.url
    for context in tabs.contexts:
        context.close()
    assert tabs.complaints == []


def is_shown(page: Page, *words: str) -> None:
    """Look for words as they were written, markup and braces included."""
    for word in words:
        expect(page.locator("body")).to_contain_text(f"{word} <img src=x onerror=alert(1)>", timeout=20_000)
    assert "49" not in page.locator("h1").first.inner_text()


def test_the_fleet_shows_names_and_alarm_texts_as_text(opened: Callable[..., Page]) -> None:
    page = opened("/")
    is_shown(page, "name", "text")
    page.get_by_text("name <img").first.hover()
    trace = page.locator(".ac-shelved")
    expect(trace).to_have_attribute("title", f"Shelved: 26 {TEXT} 26")


def test_a_machines_page_shows_everything_said_about_it_as_text(opened: Callable[..., Page]) -> None:
    page = opened("/machines/padova/filler-1")
    is_shown(page, "name", "text", "row", "warning", "rival")
    for button in page.get_by_role("button", name="Why").all()[:2]:
        button.click()
    assert page.title().startswith(f"padova / {NAME}")
    page.locator(".ac-forecast-row", has_text="139").click()
    is_shown(page, "who", "note")  # of whoever acknowledged it
    is_shown(page, "cause", "consequence", "action", "remark")
    expect(page.locator(".ac-response a")).to_have_count(0)
    page.locator(".ac-forecast-row", has_text="26").click()
    is_shown(page, "who", "because")  # of whoever shelved it
    page.get_by_role("button", name="Acknowledge", exact=True).click()
    expect(page.get_by_role("dialog").get_by_role("heading")).to_have_text(f"Acknowledge 26 {TEXT} 26")
    page.keyboard.press("Escape")
    page.locator(".ac-chart svg path[transform]").last.hover(force=True)  # a point of the timeline
    is_shown(page, "text")
    is_shown(opened("/machines/padova/failed"), "failed", "failure")


def test_the_alarms_page_shows_texts_and_reasons_as_text(opened: Callable[..., Page]) -> None:
    page = opened("/alarms?span=30d")
    is_shown(page, "text", "because", "cause", "action")
    for by in ("code", "machine", "day"):
        page.goto(page.url.split("?")[0] + f"?span=30d&by={by}")
        is_shown(page, "text")


def test_the_health_page_shows_rejected_messages_and_warnings_as_text(opened: Callable[..., Page]) -> None:
    page = opened("/health")
    is_shown(page, "reason", "agent", "row", "warning", "rival")
    page.get_by_role("button", name="Show items of not_json").click()
    is_shown(page, "detail", "topic")
    expect(page.locator(".ac-item pre").first).to_contain_text(f"body {EVIL}")


def test_the_notifications_page_shows_alarms_users_and_responses_as_text(opened: Callable[..., Page]) -> None:
    page = opened("/notifications")
    is_shown(page, "text", "who", "answer", "trouble", "action", "consequence", "remark")
    page.get_by_role("button", name="Remove webhook 1").click()
    expect(page.get_by_role("dialog")).to_contain_text("javascript:alert(4)//")


def test_the_learning_page_shows_reports_and_failures_as_text(opened: Callable[..., Page]) -> None:
    page = opened("/learning")
    is_shown(page, "name", "summary", "failure")
    page.get_by_text("1 finished").click()
    is_shown(page, "message")
    page.get_by_role("button", name="Retire padova/failed").click()
    expect(page.get_by_role("dialog")).to_be_visible()


def test_the_access_page_shows_keys_and_the_audit_log_as_text(opened: Callable[..., Page]) -> None:
    page = opened("/access")
    is_shown(page, "key", "maker", "who", "action", "subject", "why", "origin")
    page.get_by_role("button", name="Revoke the API key of").click()
    expect(page.get_by_role("dialog").get_by_role("heading")).to_have_text(f"Revoke the API key of key {EVIL}?")


@pytest.mark.parametrize(
    "path",
    [
        f"/machines/padova/{quote(EVIL, safe='')}",
        f"/alarms?site={quote(EVIL)}&machine={quote(EVIL)}&shift={quote(EVIL)}&span={quote(EVIL)}&by={quote(EVIL)}",
        f"/learning?site={quote(EVIL)}&machine={quote(EVIL)}",
        f"/health?{quote(EVIL)}",
        f"/notifications?{quote(EVIL)}",
        f"/access?{quote(EVIL)}",
        f"/{quote(EVIL)}",
    ],
)
def test_an_address_is_never_a_part_of_the_page(hostile: Plant, browser: Browser, path: str) -> None:
    dialogs: list[str] = []

    def dismissed(dialog: Dialog) -> None:
        dialogs.append(dialog.message)
        dialog.dismiss()

    context = browser.new_context()
    session = {"name": SESSION_COOKIE, "value": signed_in(hostile, Role.ADMIN), "url": hostile.address}
    context.add_cookies([session])  # type: ignore[list-item]  # a plain dict
    page = context.new_page()
    page.on("dialog", dismissed)
    page.goto(f"{hostile.address}{path}")
    page.wait_for_load_state("networkidle")
    assert page.locator("img[src='x'], [onerror]").count() == 0
    assert dialogs == []
    context.close()
