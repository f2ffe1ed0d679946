"""Sign-in: without a session there is only the form, with one only what the role allows."""

import re
from collections.abc import Callable

import httpx
import pytest
from playwright.sync_api import Page, expect

from tests.page.conftest import LEARNED, PASSWORD, Stage
from wire.enums import Role
from wire.rest.auth import SESSION_COOKIE

PAGES = ("/", f"/machines/{LEARNED[0]}", "/alarms?span=24h", "/learning", "/health", "/access")


@pytest.mark.parametrize("path", PAGES)
def test_without_a_session_every_page_redirects_to_sign_in(stage: Stage, path: str) -> None:
    answer = httpx.get(f"{stage.plant.address}{path}", follow_redirects=False)
    assert answer.status_code == 303
    assert answer.headers["location"].startswith("/sign-in?next=%2F")
    assert LEARNED[0] not in answer.text
    forged = httpx.get(f"{stage.plant.address}{path}", cookies={SESSION_COOKIE: "acs_000000000000_forged"})
    assert forged.status_code == 303


def test_pages_have_security_headers(stage: Stage) -> None:
    page = httpx.get(f"{stage.plant.address}/sign-in")
    assert "frame-ancestors 'none'" in page.headers["content-security-policy"]
    assert "default-src 'self'" in page.headers["content-security-policy"]
    assert page.headers["x-content-type-options"] == "nosniff"
    assert page.headers["cache-control"] == "no-store"


def test_sign_in_leads_to_the_wanted_page_and_sign_out_ends_the_session(page_at: Callable[..., Page]) -> None:
    page = page_at("/alarms", role=None)
    page.get_by_label("User name").fill("page-operator")
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("heading", name="Alarm statistics (ISA-18.2)")).to_be_visible()
    cookie = next(one for one in page.context.cookies() if one["name"] == SESSION_COOKIE)
    assert (cookie["httpOnly"], cookie["sameSite"]) == (True, "Strict")
    page.get_by_text("page-operator").click()
    page.get_by_role("button", name="Sign out").click()
    expect(page.get_by_role("heading", name="Sign in")).to_be_visible()
    page.goto(page.url.split("/sign-in")[0] + "/")
    expect(page.get_by_role("heading", name="Sign in")).to_be_visible()


def test_sign_in_never_redirects_to_another_site(page_at: Callable[..., Page], stage: Stage) -> None:
    page = page_at("/sign-in?next=//evil.example/", role=None)
    page.get_by_label("User name").fill("page-viewer")
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("heading", name=re.compile("^Alarm forecast"))).to_be_visible()
    assert page.url.startswith(stage.plant.address)


def test_a_temporary_password_must_be_changed_first(page_at: Callable[..., Page], stage: Stage) -> None:
    made = stage.plant.api.users.add("newcomer", role=Role.VIEWER)
    assert made.password
    page = page_at("/", role=None)
    page.get_by_label("User name").fill("newcomer")
    page.get_by_label("Password").fill(made.password)
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("heading", name="Change password")).to_be_visible()
    page.get_by_label("Current password").fill(made.password)
    page.get_by_label("New password", exact=True).fill("seven green forks dance")
    page.get_by_label("Confirm new password").fill("seven green forks dance")
    page.get_by_role("button", name="Change password").click()
    expect(page.get_by_role("heading", name=re.compile("^Alarm forecast"))).to_be_visible()


def test_a_viewer_gets_no_actions(page_at: Callable[..., Page]) -> None:
    page = page_at(f"/machines/{LEARNED[0]}", role=Role.VIEWER)
    expect(page.get_by_role("heading", name=re.compile("^Forecast, next"))).to_be_visible()
    expect(page.locator(".ac-forecast-row").first).to_be_visible()
    expect(page.get_by_role("button", name="Shelve")).not_to_be_visible()
    page.goto(page.url.split("/machines")[0] + "/learning")
    expect(page.get_by_role("heading", name="Versions")).to_be_visible()
    expect(page.get_by_role("heading", name="Enrol a machine")).not_to_be_visible()
    expect(page.get_by_role("button", name="Retire")).to_have_count(0)


def test_a_session_that_ends_elsewhere_closes_the_open_page(page_at: Callable[..., Page], stage: Stage) -> None:
    stage.plant.api.users.add("leaver", role=Role.VIEWER, password=PASSWORD)
    page = page_at("/", role=None)
    page.get_by_label("User name").fill("leaver")
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("heading", name=re.compile("^Alarm forecast"))).to_be_visible()
    stage.plant.api.users.remove("leaver")
    expect(page.get_by_role("heading", name="Sign in")).to_be_visible(timeout=60_000)
