"""The door: strangers see nothing but a form, and everybody only what they may."""

from collections.abc import Callable

import httpx
import pytest
from playwright.sync_api import Page, expect

from tests.page.conftest import LEARNED, PASSWORD, Stage
from wire.enums import Role
from wire.rest.auth import SESSION_COOKIE

PAGES = ("/", f"/machines/{LEARNED[0]}", "/alarms?span=24h", "/learning", "/health", "/access")


@pytest.mark.parametrize("path", PAGES)
def test_a_stranger_is_led_to_the_form_and_told_nothing(stage: Stage, path: str) -> None:
    answer = httpx.get(f"{stage.plant.address}{path}", follow_redirects=False)
    assert answer.status_code == 303
    assert answer.headers["location"].startswith("/sign-in?next=%2F")
    assert LEARNED[0] not in answer.text
    forged = httpx.get(f"{stage.plant.address}{path}", cookies={SESSION_COOKIE: "acs_000000000000_forged"})
    assert forged.status_code == 303


def test_pages_and_answers_carry_the_headers_that_keep_them_apart_from_other_sites(stage: Stage) -> None:
    page = httpx.get(f"{stage.plant.address}/sign-in")
    assert "frame-ancestors 'none'" in page.headers["content-security-policy"]
    assert "default-src 'self'" in page.headers["content-security-policy"]
    assert page.headers["x-content-type-options"] == "nosniff"
    assert page.headers["cache-control"] == "no-store"


def test_one_signs_in_goes_where_one_wanted_and_signs_out(page_at: Callable[..., Page]) -> None:
    page = page_at("/alarms", role=None)
    page.get_by_label("Name").fill("page-operator")
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("heading", name="Which alarms came, and how many")).to_be_visible()
    cookie = next(one for one in page.context.cookies() if one["name"] == SESSION_COOKIE)
    assert (cookie["httpOnly"], cookie["sameSite"]) == (True, "Strict")
    page.get_by_text("page-operator").click()
    page.get_by_role("button", name="Sign out").click()
    expect(page.get_by_role("heading", name="Sign in")).to_be_visible()
    page.goto(page.url.split("/sign-in")[0] + "/")
    expect(page.get_by_role("heading", name="Sign in")).to_be_visible()


def test_nobody_is_led_to_another_site(page_at: Callable[..., Page], stage: Stage) -> None:
    page = page_at("/sign-in?next=//evil.example/", role=None)
    page.get_by_label("Name").fill("page-viewer")
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("heading", name="Which alarms will come next")).to_be_visible()
    assert page.url.startswith(stage.plant.address)


def test_whoever_was_given_a_password_takes_one_of_their_own_first(
    page_at: Callable[..., Page], stage: Stage
) -> None:
    made = stage.plant.api.users.add("newcomer", role=Role.VIEWER)
    assert made.password
    page = page_at("/", role=None)
    page.get_by_label("Name").fill("newcomer")
    page.get_by_label("Password").fill(made.password)
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("heading", name="Another password for newcomer")).to_be_visible()
    page.get_by_label("Present password").fill(made.password)
    page.get_by_label("New password", exact=True).fill("seven green forks dance")
    page.get_by_label("New password, again").fill("seven green forks dance")
    page.get_by_role("button", name="Take it").click()
    expect(page.get_by_role("heading", name="Which alarms will come next")).to_be_visible()


def test_a_viewer_sees_and_is_offered_no_deed(page_at: Callable[..., Page]) -> None:
    page = page_at(f"/machines/{LEARNED[0]}", role=Role.VIEWER)
    expect(page.get_by_role("heading", name="What comes next")).to_be_visible()
    expect(page.locator(".ac-forecast-row").first).to_be_visible()
    expect(page.get_by_role("button", name="Shelve")).not_to_be_visible()
    page.goto(page.url.split("/machines")[0] + "/learning")
    expect(page.get_by_role("heading", name="Versions")).to_be_visible()
    expect(page.get_by_role("heading", name="Enrol a machine")).not_to_be_visible()
    expect(page.get_by_role("button", name="Retire")).to_have_count(0)


def test_a_session_that_ends_elsewhere_closes_the_open_page(page_at: Callable[..., Page], stage: Stage) -> None:
    stage.plant.api.users.add("leaver", role=Role.VIEWER, password=PASSWORD)
    page = page_at("/", role=None)
    page.get_by_label("Name").fill("leaver")
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("heading", name="Which alarms will come next")).to_be_visible()
    stage.plant.api.users.remove("leaver")
    expect(page.get_by_role("heading", name="Sign in")).to_be_visible(timeout=60_000)
