"""The health page in a real browser: status, quarantine, agents, ingest and infrastructure."""

import json
import re
from collections.abc import Callable
from uuid import uuid4

import paho.mqtt.client as mqtt
import pytest
from paho.mqtt.enums import CallbackAPIVersion
from playwright.sync_api import Locator, Page, expect

from tests.conftest import wait_until
from tests.page.conftest import LEARNED, Stage

LINE = "#2f7fc4"  # the colour of a line in the light theme
EVENTS = f"alarmcast/v1/{LEARNED[0]}/events"


def panel(page: Page, title: str) -> Locator:
    return page.locator(".ac-panel", has=page.get_by_role("heading", name=title, exact=True))


def send(stage: Stage, body: bytes) -> None:
    """Publish something as an agent would."""
    client = mqtt.Client(CallbackAPIVersion.VERSION2, client_id=f"stranger-{uuid4().hex[:8]}")
    client.connect("127.0.0.1", stage.plant.broker.port)
    client.loop_start()
    client.publish(EVENTS, body, qos=1).wait_for_publish(10)
    client.disconnect()
    client.loop_stop()


def rejected(stage: Stage, reason: str) -> int:
    reasons = stage.plant.get("/v1/quarantine/reasons").json()
    return sum(one["items"] for one in reasons if one["reason"] == reason)


def test_a_ready_service_shows_no_error(page_at: Callable[..., Page]) -> None:
    page = page_at("/health")
    expect(page.get_by_text("Receiving alarms, forecasts up to date.")).to_be_visible()
    expect(page.locator(".ac-bad")).to_have_count(0)


def test_a_rejected_message_is_shown_within_seconds(page_at: Callable[..., Page], stage: Stage) -> None:
    page = page_at("/health")
    body = b"no json <img src=x onerror=alert(1)>"
    send(stage, body)
    row = panel(page, "Quarantine").get_by_role("row", name=re.compile("not_json"))
    row.get_by_role("button", name="Show items").click(timeout=20_000)
    items = page.get_by_role("region", name="Items with this reason")
    expect(items).to_contain_text(LEARNED[0])
    shown = page.locator(".ac-item pre")
    if not shown.count():
        items.get_by_role("button", name=re.compile("Open item")).first.click()
    expect(shown).to_have_text(body.decode())


def test_binary_messages_are_shown_as_hex(page_at: Callable[..., Page], stage: Stage) -> None:
    before = rejected(stage, "not_json")
    send(stage, b"\xff\xfe\x00binary")
    wait_until(lambda: rejected(stage, "not_json") > before, "the message is quarantined")
    page = page_at("/health")
    row = panel(page, "Quarantine").get_by_role("row", name=re.compile("not_json"))
    row.get_by_role("button", name="Show items").click()
    items = page.get_by_role("region", name="Items with this reason")
    items.get_by_role("button", name=re.compile("Open item")).first.click()
    expect(page.locator(".ac-item pre")).to_contain_text("ff fe 00 62 69 6e 61 72 79")
    expect(page.locator(".ac-item pre")).to_contain_text("...binary")
    expect(page.get_by_text("Correct and replay")).to_have_count(0)


def test_an_item_is_replayed_unchanged_and_then_corrected(page_at: Callable[..., Page], stage: Stage) -> None:
    moment = stage.plant.status()["plant_time"]
    event = {"seq": 1, "code": -5, "at": moment}
    body = {"epoch": str(uuid4()), "events": [event]}
    send(stage, json.dumps(body).encode())
    wait_until(lambda: rejected(stage, "bad_code") == 1, "the message is quarantined")
    page = page_at("/health")
    row = panel(page, "Quarantine").get_by_role("row", name=re.compile("bad_code"))
    row.get_by_role("button", name="Show items").click()
    page.get_by_role("button", name="Replay unchanged").click()
    expect(page.get_by_text(re.compile("Still rejected"))).to_be_visible()
    page.get_by_text("Correct and replay").click()
    field = page.get_by_label("Corrected message body")
    field.fill(re.sub(r'("code":\s*)-5\b', r"\g<1>139", field.input_value()))
    page.get_by_role("button", name="Replay corrected message").click()
    expect(page.get_by_text(re.compile("Replayed: 1 stored"))).to_be_visible()
    expect(row).to_have_count(0)
    assert rejected(stage, "bad_code") == 0


def test_agents_are_shown_worst_first(page_at: Callable[..., Page]) -> None:
    page = page_at("/health")
    rows = panel(page, "Agents").locator("tbody tr")
    expect(rows).to_have_count(len(LEARNED))
    expect(rows.first).to_contain_text(LEARNED[1])  # it has no agent
    expect(rows.first).to_contain_text("never connected")
    expect(rows.last).to_contain_text("online")
    panel(page, "Agents").get_by_role("button", name="machine").click()
    expect(rows.first).to_contain_text(LEARNED[0])


def test_charts_show_the_minutes_before_the_page_was_opened(page_at: Callable[..., Page], stage: Stage) -> None:
    stage.raise_alarm(139)
    page = page_at("/health")
    chart = panel(page, "Ingest").locator(".ac-chart").first
    expect(chart).to_have_attribute("aria-label", re.compile("Events stored per second in the last minutes"))
    # A line through several samples, though this page has received one at most.
    line = chart.locator(f'svg path[stroke="{LINE}"]').first
    expect(line).to_have_attribute("d", re.compile(r"^M[^ML]+L[^ML]+L"), timeout=3000)


def test_the_infrastructure_is_shown(page_at: Callable[..., Page], stage: Stage) -> None:
    page = page_at("/health")
    status = stage.plant.status()
    infrastructure = panel(page, "Infrastructure")
    expect(infrastructure).to_contain_text("connected")
    expect(infrastructure).to_contain_text(status["broker"]["address"])
    expect(infrastructure).to_contain_text(status["model_version"])
    infrastructure.get_by_text("Versions").click()
    for name, version in status["versions"].items():
        expect(infrastructure.get_by_role("row", name=f"{name} {version}")).to_be_visible()


@pytest.mark.parametrize("width", [390, 1920])
def test_the_page_fits_the_screen(page_at: Callable[..., Page], width: int) -> None:
    page = page_at("/health", width=width)
    expect(panel(page, "Agents").locator("tbody tr").first).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth") <= width
