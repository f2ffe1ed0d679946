"""The health page in a real browser: what is wrong, what was refused, who waits, who is told."""

import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread
from uuid import uuid4

import paho.mqtt.client as mqtt
import pytest
from paho.mqtt.enums import CallbackAPIVersion
from playwright.sync_api import Locator, Page, expect

from tests.conftest import wait_until
from tests.page.conftest import LEARNED, Stage

LINE = "#2f7fc4"  # the colour of a bar in the light
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


def refused(stage: Stage, reason: str) -> int:
    told = stage.plant.get("/v1/quarantine/reasons").json()
    return sum(one["items"] for one in told if one["reason"] == reason)


@contextmanager
def receiver(status: int) -> Iterator[tuple[str, list[bytes]]]:
    """Answer every POST with a status, and keep what came."""
    came: list[bytes] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            came.append(self.rfile.read(int(self.headers["Content-Length"])))
            self.send_response(status)
            self.end_headers()

        def log_message(self, *_: object) -> None:  # tests are quiet
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/andon", came
        server.shutdown()


def test_it_is_calm_while_nothing_is_wrong(page_at: Callable[..., Page]) -> None:
    page = page_at("/health")
    expect(page.get_by_text("Events are taken and forecasts given.")).to_be_visible()
    expect(page.locator(".ac-bad")).to_have_count(0)


def test_what_was_refused_seconds_ago_is_shown_and_can_be_looked_into(
    page_at: Callable[..., Page], stage: Stage
) -> None:
    page = page_at("/health")
    body = b"no json <img src=x onerror=alert(1)>"
    send(stage, body)
    row = panel(page, "Quarantine").get_by_role("row", name=re.compile("not_json"))
    row.get_by_role("button", name="Look inside").click(timeout=20_000)
    items = page.get_by_role("region", name="Items of this reason")
    expect(items).to_contain_text(LEARNED[0])
    shown = page.locator(".ac-item pre")
    if not shown.count():
        items.get_by_role("button", name=re.compile("Open item")).first.click()
    expect(shown).to_have_text(body.decode())


def test_bytes_that_are_no_text_are_shown_as_hex(page_at: Callable[..., Page], stage: Stage) -> None:
    before = refused(stage, "not_json")
    send(stage, b"\xff\xfe\x00binary")
    wait_until(lambda: refused(stage, "not_json") > before, "it is quarantined")
    page = page_at("/health")
    row = panel(page, "Quarantine").get_by_role("row", name=re.compile("not_json"))
    row.get_by_role("button", name="Look inside").click()
    items = page.get_by_role("region", name="Items of this reason")
    items.get_by_role("button", name=re.compile("Open item")).first.click()
    expect(page.locator(".ac-item pre")).to_contain_text("ff fe 00 62 69 6e 61 72 79")
    expect(page.locator(".ac-item pre")).to_contain_text("...binary")
    expect(page.get_by_text("Correct and replay")).to_have_count(0)


def test_an_item_is_replayed_as_it_is_and_then_corrected(page_at: Callable[..., Page], stage: Stage) -> None:
    moment = stage.plant.status()["plant_time"]
    event = {"seq": 1, "code": -5, "at": moment}
    body = {"epoch": str(uuid4()), "events": [event]}
    send(stage, json.dumps(body).encode())
    wait_until(lambda: refused(stage, "bad_code") == 1, "it is quarantined")
    page = page_at("/health")
    row = panel(page, "Quarantine").get_by_role("row", name=re.compile("bad_code"))
    row.get_by_role("button", name="Look inside").click()
    page.get_by_role("button", name="Replay as it is").click()
    expect(page.get_by_text(re.compile("Still refused"))).to_be_visible()
    page.get_by_text("Correct and replay").click()
    field = page.get_by_label("The body to judge instead")
    field.fill(re.sub(r'("code":\s*)-5\b', r"\g<1>139", field.input_value()))
    page.get_by_role("button", name="Replay this").click()
    expect(page.get_by_text(re.compile("Replayed: 1 stored"))).to_be_visible()
    expect(row).to_have_count(0)
    assert refused(stage, "bad_code") == 0


def test_agents_are_shown_worst_first_with_what_waits(page_at: Callable[..., Page]) -> None:
    page = page_at("/health")
    rows = panel(page, "Agents").locator("tbody tr")
    expect(rows).to_have_count(len(LEARNED))
    expect(rows.first).to_contain_text(LEARNED[1])  # it has no agent and was never heard
    expect(rows.first).to_contain_text("never connected")
    expect(rows.last).to_contain_text("online")
    panel(page, "Agents").get_by_role("button", name="machine").click()
    expect(rows.first).to_contain_text(LEARNED[0])


def test_the_minutes_before_a_page_was_opened_are_on_its_charts(
    page_at: Callable[..., Page], stage: Stage
) -> None:
    stage.raise_alarm(139)
    page = page_at("/health")
    chart = panel(page, "What comes in").locator(".ac-chart").first
    expect(chart).to_have_attribute("aria-label", re.compile("Events stored a second over the last minutes"))
    # A line through several beats at once, though this page has heard of one at most.
    line = chart.locator(f'svg path[stroke="{LINE}"]').first
    expect(line).to_have_attribute("d", re.compile(r"^M[^ML]+L[^ML]+L"), timeout=3000)


def test_it_says_what_it_stands_on(page_at: Callable[..., Page], stage: Stage) -> None:
    page = page_at("/health")
    told = stage.plant.status()
    foundations = panel(page, "What it stands on")
    expect(foundations).to_contain_text("connected")
    expect(foundations).to_contain_text(told["broker"]["address"])
    expect(foundations).to_contain_text(told["model_version"])
    foundations.get_by_text("Versions").click()
    for name, version in told["versions"].items():
        expect(foundations.get_by_role("row", name=f"{name} {version}")).to_be_visible()


def test_a_webhook_is_added_with_a_secret_shown_once_tested_and_removed(
    page_at: Callable[..., Page], stage: Stage
) -> None:
    with receiver(204) as (address, came):
        page = page_at("/health")
        webhooks = panel(page, "Webhooks")
        webhooks.get_by_text("Add a webhook").click()
        webhooks.get_by_label("Address").fill(address)
        webhooks.get_by_label("Of one site").fill("padova")
        webhooks.get_by_role("button", name="Add it").click()
        expect(page.locator(".ac-secret code")).to_have_text(re.compile(r"\S{20,}"))
        row = webhooks.locator("tbody tr")
        expect(row).to_contain_text(address)
        row.get_by_role("button", name=re.compile("Test")).click()
        expect(page.get_by_text(re.compile("The test arrived"))).to_be_visible()
        assert json.loads(came[0])["event"] == "test"
        page.reload()
        expect(row).to_contain_text(address)
        expect(page.locator(".ac-secret")).to_have_count(0)
        row.get_by_role("button", name=re.compile("Remove")).click()
        page.get_by_label("Why? It is kept").fill("The andon board is gone")
        page.get_by_role("button", name="Remove it").click()
        expect(webhooks).to_contain_text("Nobody is told over HTTP yet")
    assert stage.plant.get("/v1/webhooks").json()["webhooks"] == []


def test_a_wrong_address_is_refused_in_the_services_words(page_at: Callable[..., Page]) -> None:
    page = page_at("/health")
    webhooks = panel(page, "Webhooks")
    webhooks.get_by_text("Add a webhook").click()
    webhooks.get_by_label("Address").fill("ftp://andon.example/alarms")
    webhooks.get_by_role("button", name="Add it").click()
    expect(page.locator(".q-notification")).to_contain_text("must begin with http")
    expect(webhooks.get_by_label("Address")).to_have_value("ftp://andon.example/alarms")


@pytest.mark.parametrize("width", [390, 1920])
def test_nothing_sticks_out_of_the_screen(page_at: Callable[..., Page], width: int) -> None:
    page = page_at("/health", width=width)
    expect(panel(page, "Agents").locator("tbody tr").first).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth") <= width
