"""The fleet page in a real browser: live cards, search, sort, filter, all screen sizes."""

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from tests.conftest import wait_until
from tests.page.conftest import LEARNED, Stage
from wire.enums import Role

CARD = ".ac-card"
DARK, LIGHT = re.compile("body--dark"), re.compile("body--light")


def test_every_machine_has_a_card_with_its_most_probable_alarms(page_at: Callable[..., Page]) -> None:
    page = page_at("/")
    expect(page.locator(CARD)).to_have_count(len(LEARNED))
    expect(page.get_by_role("heading", level=1)).to_have_text(re.compile("^Alarm forecast .* next 8 hours$"))
    first = page.locator(CARD, has_text=LEARNED[0])
    expect(first.locator(".ac-card-alarms .ac-name")).to_have_count(3)
    expect(first.locator(".ac-value").first).to_contain_text("%")


def test_a_machine_that_has_never_connected_comes_last_and_shows_no_forecast(page_at: Callable[..., Page]) -> None:
    page = page_at("/")
    expect(page.locator(CARD)).to_have_count(len(LEARNED))
    last = page.locator(CARD).last
    expect(last.locator("h2")).to_have_text("padova / filler-1")
    expect(last).to_contain_text("No forecast: the agent has never connected.")
    expect(last.locator(".ac-card-alarms li")).to_have_count(0)


@pytest.mark.parametrize("path", ["/", "/health"])
def test_only_who_may_enrol_is_shown_the_way_to_it(page_at: Callable[..., Page], stage: Stage, path: str) -> None:
    name = "padova/stranger"
    agent = stage.plant.agent(name, stage.log)
    agent.start()
    try:
        wait_until(
            lambda: [one.machine for one in stage.plant.api.machines.list().unregistered] == ["stranger"],
            "the machine that is not enrolled is known",
        )
    finally:
        agent.kill()
    links = "main a[href*='machine=stranger']"
    operator, admin = page_at(path, role=Role.OPERATOR), page_at(path)
    for page in (operator, admin):
        expect(page.locator("main").get_by_text(name)).to_be_visible()
    expect(admin.locator(links)).to_have_count(1)
    expect(operator.locator(links)).to_have_count(0)
    expect(operator.locator("main").get_by_text("An administrator can enrol it.")).to_be_visible()


def test_a_shelved_alarm_leaves_a_trace_on_the_card(page_at: Callable[..., Page], stage: Stage) -> None:
    made = stage.plant.api.shelves.shelve(LEARNED[0], 139, minutes=60, reason="The sensor is being replaced")
    try:
        trace = page_at("/").locator(CARD, has_text=LEARNED[0]).locator(".ac-shelved")
        expect(trace).to_contain_text("1 shelved")
        expect(trace).to_have_attribute("title", f"Shelved: 139 {made.text}")
    finally:
        stage.plant.api.shelves.unshelve(LEARNED[0], made.id)


def test_an_alarm_that_arrives_over_mqtt_is_on_the_card_without_a_reload(
    page_at: Callable[..., Page], stage: Stage
) -> None:
    page = page_at("/")
    card = page.locator(CARD, has_text=LEARNED[0])
    expect(card).to_be_visible()
    page.evaluate("window.before = true")
    stage.raise_alarm(139)
    expect(card.locator(".ac-card-foot")).to_contain_text("just now", timeout=15_000)
    assert page.evaluate("window.before") is True


def test_machines_are_found_by_search_site_and_presence(page_at: Callable[..., Page]) -> None:
    page = page_at("/")
    expect(page.locator(CARD)).to_have_count(len(LEARNED))
    page.get_by_label("Search").fill("filler-1")
    expect(page.locator(CARD)).to_have_count(1)
    expect(page.locator(CARD)).to_contain_text("padova/filler-1")
    page.get_by_label("Search").fill("no such machine")
    expect(page.get_by_text("No machine matches")).to_be_visible()
    page.get_by_label("Search").fill("")
    page.get_by_label("Site").select_option("padova")
    expect(page.locator(CARD)).to_have_count(len(LEARNED))
    page.get_by_label("Sort by").select_option("name")
    keys = page.locator(f"{CARD} .ac-top .small").all_inner_texts()
    assert keys == sorted(LEARNED)


@pytest.mark.parametrize("width", [390, 1920])
def test_nothing_sticks_out_of_the_screen(page_at: Callable[..., Page], width: int) -> None:
    page = page_at("/", width=width)
    expect(page.locator(CARD)).to_have_count(len(LEARNED))
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_a_card_is_reached_and_opened_by_keyboard(page_at: Callable[..., Page]) -> None:
    page = page_at("/")
    expect(page.locator(CARD)).to_have_count(len(LEARNED))
    for _ in range(30):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.classList.contains('ac-card')"):
            break
    page.keyboard.press("Enter")
    page.wait_for_url("**/machines/padova/**")


def test_the_theme_is_chosen_and_remembered(page_at: Callable[..., Page]) -> None:
    page = page_at("/", dark=True)
    expect(page.locator("body")).to_have_class(DARK)
    switch = page.get_by_role("button", name="Theme")
    switch.click()
    expect(page.locator("body")).to_have_class(LIGHT)
    page.reload()
    expect(page.locator("body")).to_have_class(LIGHT)


def test_the_first_click_on_the_theme_always_changes_what_is_seen(page_at: Callable[..., Page]) -> None:
    page = page_at("/", dark=False)
    expect(page.locator("body")).to_have_class(LIGHT)
    page.get_by_role("button", name="Theme: System").click()
    expect(page.locator("body")).to_have_class(DARK)
    expect(page.get_by_role("button", name="Theme: Dark")).to_be_visible()


def test_long_names_are_wrapped_and_not_cut_on_a_phone(page_at: Callable[..., Page]) -> None:
    page = page_at("/", width=390)
    names = page.locator(f"{CARD} .ac-name, {CARD} h2, {CARD} .ac-card-foot span")
    expect(names.first).to_be_visible()
    widths = names.evaluate_all("names => names.map(name => [name.scrollWidth, name.clientWidth, name.innerText])")
    assert [name for full, shown, name in widths if shown and full > shown + 1] == []
