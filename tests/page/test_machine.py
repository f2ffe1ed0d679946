"""The machine page in a real browser: forecast, factors, actions, history."""

import re
from collections.abc import Callable
from typing import Any

import httpx
import pytest
from playwright.sync_api import Locator, Page, expect

from tests.conftest import wait_until
from tests.page.conftest import LEARNED, Stage
from tests.support.learning_helpers import enrol
from wire.enums import Role
from wire.rest.auth import SESSION_COOKIE

ROW = ".ac-forecast-row"
PATH = f"/machines/{LEARNED[0]}"
OTHER = f"/machines/{LEARNED[1]}"  # without new alarms, so its page does not change
PATIENCE = 15_000


def forecast(stage: Stage, machine: str) -> dict[str, Any]:
    return dict(stage.plant.get(f"/v1/machines/{machine}/forecast").json())


def signed(text: str) -> float:
    """Read a value with a printed minus sign among other text."""
    return float(re.sub(r"[^\d.-]", "", text.replace("\N{MINUS SIGN}", "-")))


def chosen(page: Page) -> Locator:
    return page.locator(f'{ROW}[aria-pressed="true"]')


def choose(page: Page, index: int) -> Locator:
    """Select an alarm and wait for its factors."""
    row = page.locator(ROW).nth(index)
    row.click()
    expect(row).to_have_attribute("aria-pressed", "true")
    code = row.locator(".ac-code").inner_text()
    expect(page.locator(".ac-explanation h3")).to_have_text(re.compile(rf"^{code} "))
    return row


def test_every_forecast_alarm_has_a_bar_highest_probability_first(
    page_at: Callable[..., Page], stage: Stage
) -> None:
    page = page_at(OTHER)
    alarms = forecast(stage, LEARNED[1])["alarms"]
    expect(page.get_by_role("heading", name="Forecast, next 8 h")).to_be_visible()
    expect(page.locator(ROW)).to_have_count(len(alarms))
    codes = page.locator(f"{ROW} .ac-code").all_inner_texts()
    assert codes == [str(alarm["code"]) for alarm in alarms]
    expect(page.locator(f"{ROW} .ac-within").first).to_have_text(re.compile(r"2 h .*%, 8 h .*%, 24 h .*%"))
    expect(page.locator(f"{ROW} .ac-gauge u")).to_have_count(len(alarms))
    with_rate = sum(alarm["base_rate"] is not None for alarm in alarms)
    expect(page.locator(f"{ROW} .ac-gauge b")).to_have_count(with_rate)
    expect(page.locator(".ac-expected")).to_have_count(sum(alarm["expected"] for alarm in alarms))


def test_factors_are_shown_in_percentage_points_that_sum_to_the_difference(
    page_at: Callable[..., Page], stage: Stage
) -> None:
    page = page_at(OTHER)
    choose(page, 2)
    code = forecast(stage, LEARNED[1])["alarms"][2]["code"]
    explanation = stage.plant.get(f"/v1/machines/{LEARNED[1]}/explanation?code={code}").json()
    (alarm,) = explanation["explanations"]
    factors = page.locator(".ac-explanation")
    expect(factors).to_contain_text(re.compile(r"(raised|lowered) the probability from|at its baseline of"))
    points = [signed(value) for value in factors.locator(".ac-value").all_inner_texts()]
    assert len(points) == len(alarm["contributions"]) + 1
    assert sum(points[:-1]) == pytest.approx(points[-1], abs=0.05 * len(points))
    # The API is read a moment later than the page.
    assert points[-1] == pytest.approx(100 * (alarm["probability"] - alarm["baseline_probability"]), abs=3)


def test_log_odds_are_shown_on_request_only(page_at: Callable[..., Page], stage: Stage) -> None:
    page = page_at(OTHER)
    choose(page, 2)
    code = forecast(stage, LEARNED[1])["alarms"][2]["code"]
    explanation = stage.plant.get(f"/v1/machines/{LEARNED[1]}/explanation?code={code}").json()
    (alarm,) = explanation["explanations"]
    factors = page.locator(".ac-explanation")
    expect(factors.get_by_text("Log-odds: baseline")).not_to_be_visible()
    factors.get_by_text("How is this computed?").click()
    expect(factors.get_by_text("Log-odds: baseline")).to_be_visible()
    expect(factors).to_contain_text(explanation["reading"])
    log_odds = [signed(value) for value in factors.locator("td.number").all_inner_texts()]
    difference = alarm["log_odds"] - alarm["baseline_log_odds"]
    assert sum(log_odds) == pytest.approx(difference, abs=0.2)


def test_an_alarm_is_chosen_by_keyboard_alone(page_at: Callable[..., Page]) -> None:
    page = page_at(OTHER)
    lines = page.locator(ROW)
    expect(chosen(page)).to_have_count(1)
    lines.first.focus()
    page.keyboard.press("ArrowDown")
    expect(lines.nth(1)).to_be_focused()
    page.keyboard.press("Enter")
    expect(lines.nth(1)).to_have_attribute("aria-pressed", "true")


def test_an_alarm_that_arrives_over_mqtt_is_shown_without_losing_what_the_reader_chose(
    page_at: Callable[..., Page], stage: Stage
) -> None:
    page = page_at(PATH)
    expect(page.locator(".ac-explanation h3")).to_be_visible()
    choose(page, 3)
    code = chosen(page).locator(".ac-code").inner_text()
    page.get_by_role("combobox", name="Period").select_option("8")
    page.evaluate("window.before = true")
    stage.raise_alarm(139)
    facts = page.locator(".ac-facts")
    expect(facts).to_contain_text(re.compile("Last alarm\\s*just now"), timeout=PATIENCE)
    expect(page.locator('.ac-tools [role="status"]').first).to_contain_text(
        re.compile(r"^\d+ alarm"), timeout=PATIENCE
    )
    assert chosen(page).locator(".ac-code").inner_text() == code
    expect(page.get_by_role("combobox", name="Period")).to_have_value("8")
    assert page.evaluate("window.before") is True


def test_an_alarm_is_shelved_with_a_reason_and_taken_off_again_while_its_forecast_stays(
    page_at: Callable[..., Page], stage: Stage
) -> None:
    page = page_at(OTHER)
    row = choose(page, 1)
    before = row.locator(".ac-value").inner_text()
    page.get_by_role("button", name="Shelve …").click()
    page.get_by_role("radio", name="8 hours").check()
    page.get_by_role("button", name="Shelve", exact=True).click()
    expect(page.get_by_label("Reason", exact=True)).to_be_focused()  # a reason is required
    page.get_by_label("Reason", exact=True).fill("The sensor is being replaced")
    expect(page.get_by_role("dialog")).to_contain_text("it is left out of the alarm figures until then")
    expect(page.get_by_label("Your name")).to_have_count(0)
    page.get_by_role("button", name="Shelve", exact=True).click()
    expect(row).to_contain_text("shelved")
    assert row.locator(".ac-value").inner_text() == before
    (shelf,) = stage.plant.get(f"/v1/machines/{LEARNED[1]}/shelves").json()["shelves"]
    assert shelf["reason"] == "The sensor is being replaced"
    assert shelf["actor"] == "page-admin"
    page.get_by_role("button", name="Unshelve").click()
    expect(row).not_to_contain_text("shelved")
    assert stage.plant.get(f"/v1/machines/{LEARNED[1]}/shelves").json()["shelves"] == []


def test_an_alarm_is_acknowledged_with_a_note(page_at: Callable[..., Page], stage: Stage) -> None:
    page = page_at(OTHER)
    expect(chosen(page)).to_have_count(1)
    page.get_by_role("button", name="Acknowledge", exact=True).click()
    page.get_by_label("Comment (optional)").fill("New reel is on its way")
    page.get_by_role("dialog").get_by_role("button", name="Acknowledge").click()
    expect(page.get_by_role("dialog")).to_be_hidden()

    def notes() -> list[str | None]:
        known = stage.plant.get(f"/v1/machines/{LEARNED[1]}/acknowledgements").json()["acknowledgements"]
        return [one["note"] for one in known]

    wait_until(lambda: notes() == ["New reel is on its way"], "the service knows of it")


def test_before_the_first_horizon_has_passed_the_page_says_when_scores_come(page_at: Callable[..., Page]) -> None:
    page = page_at(OTHER)
    expect(page.get_by_text("No results yet")).to_be_visible()
    expect(page.get_by_text("No scores yet")).to_be_visible()


@pytest.mark.parametrize("role", [Role.OPERATOR, Role.ADMIN])
def test_a_machine_that_is_not_found_is_a_404_and_only_an_admin_is_offered_to_enrol_it(
    stage: Stage, role: Role
) -> None:
    for name in ("padova/nobody", "padova/no%20body", "padova/%3Cscript%3E"):
        visitor = {SESSION_COOKIE: stage.sessions[role]}
        answer = httpx.get(f"{stage.plant.address}/machines/{name}", cookies=visitor, timeout=10)
        assert answer.status_code == 404
        assert "Machine not found, or you do not have access to it." in answer.text
        assert ("Enrol a machine" in answer.text) is (role is Role.ADMIN)


def test_a_machine_is_titled_with_its_site(page_at: Callable[..., Page]) -> None:
    page = page_at(PATH)
    expect(page.get_by_role("heading", level=1)).to_have_text("padova / filler-0")
    expect(page).to_have_title("padova / filler-0 · Alarmcast")


def test_a_machine_that_has_never_connected_says_so_above_its_forecast(page_at: Callable[..., Page]) -> None:
    page = page_at(OTHER)
    expect(
        page.locator(".ac-machine-head").get_by_text("Never connected: no agent of this machine")
    ).to_be_visible()


def test_an_address_that_leads_nowhere_is_a_404_in_our_own_frame(stage: Stage) -> None:
    answer = httpx.get(f"{stage.plant.address}/nope", timeout=10)
    assert answer.status_code == 404
    assert "Page not found" in answer.text
    assert "/static/alarmcast.css" in answer.text
    assert httpx.get(f"{stage.plant.address}/static/nope.css", timeout=10).status_code == 404


def test_a_machine_says_in_words_what_it_waits_for_and_when_it_has_gone(
    page_at: Callable[..., Page], stage: Stage
) -> None:
    enrol(stage.plant, "padova/filler-9")
    page = page_at("/machines/padova/filler-9")
    expect(page.get_by_text("No data received yet")).to_be_visible()
    expect(page.get_by_text("not yet trained on this machine")).to_be_visible()
    expect(page.locator(ROW).first).to_be_visible()
    retired = stage.plant.post("/v1/machines/padova/filler-9/retire", json={"reason": "sold"})
    assert retired.is_success
    for again in (False, True):
        page = page_at("/machines/padova/filler-9") if again else page  # the open page hears of it too
        expect(page.get_by_text("Retired: no alarms are received")).to_be_visible(timeout=PATIENCE)
        expect(page.locator(ROW)).to_have_count(0)
        expect(page.get_by_role("button", name="Shelve …")).to_have_count(0)
    stage.plant.api.enrolment.erase("padova/filler-9", reason="asked to")
    page = page_at("/machines/padova/filler-9")
    expect(page.get_by_text("Erased: all data of this machine was deleted")).to_be_visible()


def test_a_refusal_is_said_in_the_dialog_and_what_was_typed_stays(page_at: Callable[..., Page]) -> None:
    page = page_at(OTHER)
    expect(chosen(page)).to_have_count(1)
    page.get_by_role("button", name="Shelve …").click()
    page.get_by_label("Reason", exact=True).fill("The sensor is being replaced")
    until = page.get_by_label("until, in plant time", exact=True).last
    until.fill("9999-12-31T23:59")
    page.get_by_role("button", name="Shelve", exact=True).click()
    expect(page.get_by_role("dialog").get_by_role("alert")).to_be_visible()
    expect(page.get_by_label("Reason", exact=True)).to_have_value("The sensor is being replaced")


@pytest.mark.parametrize("width", [320, 390, 1400, 1920])
def test_nothing_sticks_out_of_the_screen(page_at: Callable[..., Page], width: int) -> None:
    page = page_at(PATH, width=width, dark=width == 390)
    expect(page.locator(".ac-explanation")).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_times_are_the_plants_with_utc_on_hover(page_at: Callable[..., Page]) -> None:
    page = page_at(PATH)
    expect(page.locator(".ac-facts dd[title$='UTC']").first).to_be_visible()
