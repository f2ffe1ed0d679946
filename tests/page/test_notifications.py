"""The notifications page in a real browser: notifications, deliveries and webhooks."""

import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.page.access import read_secret
from tests.page.conftest import Stage
from wire.enums import Role


def panel(page: Page, title: str) -> Locator:
    return page.locator(".ac-panel", has=page.get_by_role("heading", name=title, exact=True))


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


def test_a_webhook_is_added_with_a_secret_shown_once_tested_and_removed(
    page_at: Callable[..., Page], stage: Stage
) -> None:
    with receiver(204) as (address, received):
        page = page_at("/notifications")
        webhooks = panel(page, "Outgoing webhooks")
        dialog = page.get_by_role("dialog")
        webhooks.get_by_role("button", name="Add webhook").click()
        dialog.get_by_label("URL").fill(address)
        dialog.get_by_label("Scope").fill("padova")
        dialog.get_by_role("button", name="Add webhook").click()
        expect(dialog).to_contain_text("Secret of webhook")
        secret = read_secret(page)
        row = webhooks.locator("tbody tr")
        expect(row).to_contain_text(address)
        row.get_by_role("button", name=re.compile("Test")).click()
        expect(page.get_by_text(re.compile("Test delivered in"))).to_be_visible()
        assert json.loads(received[0])["event"] == "test"
        page.reload()
        expect(row).to_contain_text(address)
        assert secret not in page.content()
        row.get_by_role("button", name=re.compile("Change the policy")).click()
        dialog.get_by_label("Policy").select_option("own")
        dialog.get_by_label("High severity from").fill("80")
        dialog.get_by_label("Reason").fill("The board is for likely alarms")
        dialog.get_by_role("button", name="Change").click()
        expect(row).to_contain_text("High from 80 %")
        row.get_by_role("button", name=re.compile("Disable")).click()
        dialog.get_by_label("Reason").fill("The andon board is repaired")
        dialog.get_by_role("button", name="Disable").click()
        expect(row).to_contain_text("disabled")
        assert [one["enabled"] for one in stage.plant.get("/v1/webhooks").json()["webhooks"]] == [False]
        row.get_by_role("button", name=re.compile("Remove")).click()
        expect(dialog.get_by_role("button", name="Remove")).to_be_disabled()
        dialog.get_by_label("Reason").fill("The andon board is gone")
        dialog.get_by_role("button", name="Remove").click()
        expect(webhooks).to_contain_text("No webhooks configured.")
    assert stage.plant.get("/v1/webhooks").json()["webhooks"] == []


def test_a_wrong_url_is_rejected_with_the_error_of_the_api(page_at: Callable[..., Page]) -> None:
    page = page_at("/notifications")
    dialog = page.get_by_role("dialog")
    panel(page, "Outgoing webhooks").get_by_role("button", name="Add webhook").click()
    dialog.get_by_label("URL").fill("ftp://andon.example/alarms")
    dialog.get_by_role("button", name="Add webhook").click()
    expect(dialog).to_contain_text("must start with http")
    expect(dialog.get_by_label("URL")).to_have_value("ftp://andon.example/alarms")


def test_a_viewer_sees_notifications_but_no_webhooks(page_at: Callable[..., Page]) -> None:
    page = page_at("/notifications", role=Role.VIEWER)
    expect(page.get_by_role("navigation").get_by_role("link", name="Notifications")).to_be_visible()
    expect(panel(page, "Recent notifications")).to_be_visible()
    webhooks = panel(page, "Outgoing webhooks")
    expect(webhooks).to_contain_text("visible to administrators only")
    expect(webhooks.get_by_role("button", name="Add webhook")).to_have_count(0)


@pytest.mark.parametrize("width", [390, 1920])
def test_the_page_fits_the_screen(page_at: Callable[..., Page], width: int) -> None:
    page = page_at("/notifications", width=width)
    expect(panel(page, "Outgoing webhooks")).to_contain_text("No webhooks configured.")
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_an_admin_changes_the_policy_of_a_site_and_a_policy_that_never_notifies_is_refused(
    page_at: Callable[..., Page],
) -> None:
    page = page_at("/notifications")
    policies = panel(page, "Notification policy")
    row = policies.locator("tbody tr", has_text="padova")
    expect(row).to_contain_text("High from 50 %; medium and low from 60 %.")
    row.get_by_role("button", name="Change the policy of padova").click()
    dialog = page.get_by_role("dialog")
    for severity in ("High", "Medium", "Low"):
        dialog.get_by_label(f"{severity} severity from").fill("")
    dialog.get_by_label("Reason").fill("fewer calls")
    dialog.get_by_role("button", name="Change").click()
    expect(dialog).to_contain_text("This policy never notifies")
    dialog.get_by_label("High severity from").fill("70")
    dialog.get_by_label("Alarm codes left out").fill("26")
    dialog.get_by_label("At most per machine and shift").fill("5")
    dialog.get_by_role("button", name="Change").click()
    expect(row).to_contain_text("High from 70 %; without low, medium, code 26; at most 5 per machine and shift.")
