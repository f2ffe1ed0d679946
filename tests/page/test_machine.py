"""A machine's page in a real browser: what comes next, why, what may be done about it, and what was."""

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

LINE = ".ac-forecast-row"
PATH = f"/machines/{LEARNED[0]}"
OTHER = f"/machines/{LEARNED[1]}"  # nobody raises alarms there, so what it shows stays as it is
PATIENCE = 15_000


def forecast(stage: Stage, machine: str) -> dict[str, Any]:
    return dict(stage.plant.get(f"/v1/machines/{machine}/forecast").json())


def signed(text: str) -> float:
    """Read a figure with the minus sign that people print, whatever words stand before it."""
    return float(re.sub(r"[^\d.-]", "", text.replace("\N{MINUS SIGN}", "-")))


def chosen(page: Page) -> Locator:
    return page.locator(f'{LINE}[aria-pressed="true"]')


def choose(page: Page, place: int) -> Locator:
    """Press a line, and wait until what is beside it is about it: until then it is drawn anew under the hand."""
    line = page.locator(LINE).nth(place)
    line.click()
    expect(line).to_have_attribute("aria-pressed", "true")
    code = line.locator(".ac-name").inner_text().split()[-1]
    expect(page.locator(".ac-explanation h3")).to_have_text(re.compile(rf"^{code} "))
    return line


def test_every_alarm_that_is_forecast_has_a_bar_most_likely_first(
    page_at: Callable[..., Page], stage: Stage
) -> None:
    page = page_at(OTHER)
    said = forecast(stage, LEARNED[1])["alarms"]
    expect(page.locator(LINE)).to_have_count(len(said))
    texts = page.locator(f"{LINE} .ac-name").all_inner_texts()
    assert [text.split()[-1] for text in texts] == [str(one["code"]) for one in said]
    expect(page.locator(f"{LINE} .ac-gauge u")).to_have_count(len(said))
    expect(page.locator(f"{LINE} .ac-gauge b")).to_have_count(sum(one["base_rate"] is not None for one in said))
    expect(page.locator(".ac-expected")).to_have_count(sum(one["expected"] for one in said))


def test_the_why_of_an_alarm_is_what_the_api_says_and_sums_to_the_difference(
    page_at: Callable[..., Page], stage: Stage
) -> None:
    page = page_at(OTHER)
    choose(page, 2)
    code = forecast(stage, LEARNED[1])["alarms"][2]["code"]
    why = page.locator(".ac-explanation")
    expect(why.locator("h3")).to_have_text(re.compile(rf"^{code} "))
    told = stage.plant.get(f"/v1/machines/{LEARNED[1]}/explanation?code={code}").json()
    reason = told["explanations"][0]
    expect(why).to_contain_text(told["reading"])
    expect(why.locator("li").nth(1)).to_be_visible()
    shares = [signed(text) for text in why.locator(".ac-value").all_inner_texts()]
    assert sum(shares[:-1]) == pytest.approx(shares[-1], abs=0.005 * len(shares))
    # Asked a moment later than the page did, in which the plant's clock went on.
    assert shares[-1] == pytest.approx(reason["log_odds"] - reason["baseline_log_odds"], abs=0.2)


def test_an_alarm_is_chosen_by_keyboard_alone(page_at: Callable[..., Page]) -> None:
    page = page_at(OTHER)
    lines = page.locator(LINE)
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
    code = chosen(page).locator(".ac-name .small").inner_text()
    page.get_by_label("Span").select_option("8")
    page.evaluate("window.before = true")
    stage.raise_alarm(139)
    facts = page.locator(".ac-facts")
    expect(facts).to_contain_text(re.compile("Last alarm\\s*just now"), timeout=PATIENCE)
    expect(page.locator('.ac-tools [role="status"]').first).to_contain_text(
        re.compile(r"^\d+ alarm"), timeout=PATIENCE
    )
    assert chosen(page).locator(".ac-name .small").inner_text() == code
    expect(page.get_by_label("Span")).to_have_value("8")
    assert page.evaluate("window.before") is True


def test_an_alarm_is_shelved_with_a_reason_and_taken_off_again_while_its_forecast_stays(
    page_at: Callable[..., Page], stage: Stage
) -> None:
    page = page_at(OTHER)
    line = choose(page, 1)
    before = line.locator(".ac-value").inner_text()
    page.get_by_role("button", name="Shelve …").click()
    page.get_by_role("radio", name="8 hours").check()
    page.get_by_role("button", name="Shelve it").click()
    expect(page.get_by_label("Why", exact=True)).to_be_focused()  # the browser insists on a reason
    page.get_by_label("Why", exact=True).fill("The sensor is being replaced")
    expect(page.get_by_role("dialog")).to_contain_text("it is left out of the alarm figures until then")
    expect(page.get_by_label("Your name")).to_have_count(0)
    page.get_by_role("button", name="Shelve it").click()
    expect(line).to_contain_text("shelved")
    assert line.locator(".ac-value").inner_text() == before
    (shelf,) = stage.plant.get(f"/v1/machines/{LEARNED[1]}/shelves").json()["shelves"]
    assert shelf["reason"] == "The sensor is being replaced"
    assert shelf["actor"] == "page-admin"
    page.get_by_role("button", name="Unshelve").click()
    expect(line).not_to_contain_text("shelved")
    assert stage.plant.get(f"/v1/machines/{LEARNED[1]}/shelves").json()["shelves"] == []


def test_an_alarm_is_acknowledged_with_a_note(page_at: Callable[..., Page], stage: Stage) -> None:
    page = page_at(OTHER)
    expect(chosen(page)).to_have_count(1)
    page.get_by_role("button", name="Acknowledge", exact=True).click()
    page.get_by_label("What is done about it").fill("New reel is on its way")
    page.get_by_role("button", name="Acknowledge it").click()
    expect(page.get_by_role("dialog")).to_be_hidden()

    def notes() -> list[str | None]:
        known = stage.plant.get(f"/v1/machines/{LEARNED[1]}/acknowledgements").json()["acknowledgements"]
        return [one["note"] for one in known]

    wait_until(lambda: notes() == ["New reel is on its way"], "the service knows of it")


def test_before_the_first_horizon_has_passed_the_page_says_when_scores_come(page_at: Callable[..., Page]) -> None:
    page = page_at(OTHER)
    expect(page.get_by_text("Nothing to judge yet")).to_be_visible()
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
    assert "There is no such page" in answer.text
    assert "/static/alarmcast.css" in answer.text
    assert httpx.get(f"{stage.plant.address}/static/nope.css", timeout=10).status_code == 404


def test_a_machine_says_in_words_what_it_waits_for_and_when_it_has_gone(
    page_at: Callable[..., Page], stage: Stage
) -> None:
    enrol(stage.plant, "padova/filler-9")
    page = page_at("/machines/padova/filler-9")
    expect(page.get_by_text("Nothing has been heard of it yet")).to_be_visible()
    expect(page.get_by_text("it has not learned this machine")).to_be_visible()
    expect(page.locator(LINE).first).to_be_visible()
    retired = stage.plant.post("/v1/machines/padova/filler-9/retire", json={"reason": "sold"})
    assert retired.is_success
    for again in (False, True):
        page = page_at("/machines/padova/filler-9") if again else page  # the open page hears of it too
        expect(page.get_by_text("It has been retired")).to_be_visible(timeout=PATIENCE)
        expect(page.locator(LINE)).to_have_count(0)
        expect(page.get_by_role("button", name="Shelve …")).to_have_count(0)
    stage.plant.api.enrolment.erase("padova/filler-9", reason="asked to")
    page = page_at("/machines/padova/filler-9")
    expect(page.get_by_text("It has been erased with all that it told")).to_be_visible()


def test_a_refusal_is_said_in_the_dialog_and_what_was_typed_stays(page_at: Callable[..., Page]) -> None:
    page = page_at(OTHER)
    expect(chosen(page)).to_have_count(1)
    page.get_by_role("button", name="Shelve …").click()
    page.get_by_label("Why", exact=True).fill("The sensor is being replaced")
    until = page.get_by_label("until, in plant time", exact=True).last
    until.fill("9999-12-31T23:59")
    page.get_by_role("button", name="Shelve it").click()
    expect(page.get_by_role("dialog").get_by_role("alert")).to_be_visible()
    expect(page.get_by_label("Why", exact=True)).to_have_value("The sensor is being replaced")


@pytest.mark.parametrize("width", [320, 390, 1400, 1920])
def test_nothing_sticks_out_of_the_screen(page_at: Callable[..., Page], width: int) -> None:
    page = page_at(PATH, width=width, dark=width == 390)
    expect(page.locator(".ac-explanation")).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_times_are_the_plants_with_utc_on_hover(page_at: Callable[..., Page]) -> None:
    page = page_at(PATH)
    expect(page.locator(".ac-facts dd[title$='UTC']").first).to_be_visible()
