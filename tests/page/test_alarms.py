"""The alarms page in a real browser: the API's figures, in a view that its address holds."""

import csv
import io
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.page.conftest import LEARNED, Stage


def panel(page: Page, title: str) -> Locator:
    return page.locator(".ac-panel", has=page.get_by_role("heading", name=title, exact=True))


def chosen(page: Page, title: str) -> Locator:
    return page.get_by_role("search").get_by_label(title)


def tab(page: Page, title: str) -> Locator:
    return page.locator(".ac-tabs").get_by_role("button", name=title, exact=True)


def counted(page: Page, address: str) -> None:
    """Wait until a choice is in the address and its figures are shown; until then what is below them moves."""
    page.wait_for_url(address)
    expect(page.locator(".ac-sheet[aria-busy]")).to_have_attribute("aria-busy", "false")


def query(page: Page) -> dict[str, list[str]]:
    return parse_qs(urlsplit(page.url).query)


def test_the_commonest_codes_are_those_of_the_api_with_shares_that_add_up(
    page_at: Callable[..., Page], stage: Stage
) -> None:
    page = page_at("/alarms?span=30d")
    rows = panel(page, "Ten commonest alarms").locator("tbody tr")
    expect(rows.first).to_be_visible()
    since = datetime.now(UTC) - timedelta(days=30)
    top = stage.plant.get(f"/v1/alarm-metrics?since={since:%Y-%m-%dT%H:%M:%SZ}").json()["top"]
    expect(rows).to_have_count(len(top))
    for row, code in zip(rows.all(), top, strict=True):
        expect(row).to_contain_text(code["text"])
        expect(row).to_contain_text(f"code {code['code']}")
    together = f"{round(100 * sum(code['share'] for code in top))} %"
    expect(rows.last.locator("td").nth(3)).to_have_text(together)


def test_a_choice_is_in_the_address_and_a_shared_address_shows_the_same(page_at: Callable[..., Page]) -> None:
    page = page_at("/alarms")
    chosen(page, "Machine").select_option(LEARNED[1])
    expect(panel(page, "Line by line").locator("tbody tr")).to_have_count(1)
    chosen(page, "Shift").select_option("late")
    chosen(page, "Time").select_option("30d")
    counted(page, "**span=30d*")
    tab(page, "day").click()
    counted(page, "**by=day*")
    assert query(page) == {
        "site": ["padova"],
        "machine": ["filler-1"],
        "shift": ["late"],
        "span": ["30d"],
        "by": ["day"],
    }
    other = page_at(f"/alarms?{urlsplit(page.url).query}")
    expect(chosen(other, "Site")).to_have_value("padova")
    expect(chosen(other, "Machine")).to_have_value(LEARNED[1])
    expect(chosen(other, "Shift")).to_have_value("late")
    expect(chosen(other, "Time")).to_have_value("30d")
    expect(tab(other, "day")).to_have_attribute("aria-pressed", "true")
    lines = panel(page, "Line by line").locator("tbody tr").all_inner_texts()
    assert lines
    assert panel(other, "Line by line").locator("tbody tr").all_inner_texts() == lines


def test_own_days_are_chosen_and_kept(page_at: Callable[..., Page]) -> None:
    page = page_at("/alarms")
    chosen(page, "Time").select_option("own")
    first = f"{datetime.now(UTC) - timedelta(days=3):%Y-%m-%d}"
    page.get_by_role("textbox", name="From", exact=True).fill(first)
    counted(page, f"**first={first}*")
    tab(page, "day").click()
    expect(panel(page, "Line by line").locator("tbody tr")).to_have_count(4)
    expect(page.get_by_role("textbox", name="From", exact=True)).to_have_value(first)


def test_days_in_the_wrong_order_are_answered_in_a_sentence(page_at: Callable[..., Page]) -> None:
    page = page_at("/alarms?span=own&first=2026-02-02&last=2026-01-01")
    expect(page.get_by_role("alert").filter(has_text="first day")).to_be_visible()


def test_a_machine_that_is_not_there_is_answered_in_a_sentence(page_at: Callable[..., Page]) -> None:
    page = page_at("/alarms?site=padova&machine=nobody")
    expect(page.get_by_role("alert").filter(has_text="nobody")).to_be_visible()


def test_lines_sort_by_a_pressed_heading(page_at: Callable[..., Page]) -> None:
    page = page_at("/alarms?span=30d")
    rows = panel(page, "Line by line").locator("tbody tr")
    expect(rows).to_have_count(len(LEARNED))
    heading = panel(page, "Line by line").get_by_role("button", name="alarms", exact=True)
    heading.click()

    def counts() -> list[int]:
        return [int(row.locator("td").nth(1).inner_text().replace(",", "")) for row in rows.all()]

    down = counts()
    assert down == sorted(down, reverse=True)
    heading.click()
    assert counts() == sorted(down)
    assert len(set(down)) > 1


@pytest.mark.parametrize("title", ["Ten commonest alarms", "Floods", "Chattering alarms"])
def test_each_list_is_to_be_had_as_csv_with_as_many_rows(
    page_at: Callable[..., Page], stage: Stage, title: str
) -> None:
    page = page_at("/alarms?span=30d")
    listed = panel(page, title)
    expect(listed.locator("tbody tr").first).to_be_visible()
    address = listed.get_by_role("link", name="CSV").get_attribute("href")
    answer = stage.plant.get(address or "")
    assert answer.headers["content-type"].startswith("text/csv")
    rows = list(csv.DictReader(io.StringIO(answer.text)))
    more = listed.get_by_role("button", name=re.compile("Show all"))
    if more.count():
        more.click()
    if title != "Ten commonest alarms":  # of codes the page has ten, the CSV all
        expect(listed.locator("tbody tr")).to_have_count(min(100, len(rows)))
    assert len(rows) >= listed.locator("tbody tr").count() > 0


def test_every_alarm_is_to_be_had_as_csv(page_at: Callable[..., Page], stage: Stage) -> None:
    page = page_at("/alarms?site=padova&machine=filler-1&span=24h")
    link = page.get_by_role("link", name="Every alarm as CSV")
    expect(link).to_have_attribute("href", re.compile("machine=filler-1"))
    answer = stage.plant.get(link.get_attribute("href") or "")
    machines = {row["machine"] for row in csv.DictReader(io.StringIO(answer.text))}
    assert machines == {"filler-1"}


def test_a_flood_leads_to_its_machine(page_at: Callable[..., Page]) -> None:
    page = page_at("/alarms?span=30d")
    link = panel(page, "Floods").locator("tbody a").first
    expect(link).to_have_attribute("href", re.compile("^/machines/padova/filler-"))


def test_a_shelved_alarm_is_shown_with_who_and_why_and_unshelved(
    page_at: Callable[..., Page], stage: Stage
) -> None:
    wish = {"code": 139, "minutes": 60, "reason": "Sensor <b>on</b> order", "by": "Anna"}
    assert stage.plant.post(f"/v1/machines/{LEARNED[0]}/shelves", json=wish).status_code == 201
    page = page_at("/alarms")
    row = panel(page, "Shelved now").locator("tbody tr")
    expect(row).to_contain_text("Sensor <b>on</b> order")
    expect(row).to_contain_text("Anna")
    row.get_by_role("button", name="Unshelve").click()
    expect(panel(page, "Shelved now")).to_contain_text("Nothing is shelved.")
    assert stage.plant.get("/v1/shelves").json()["shelves"] == []


def test_maintenance_is_planned_shown_and_ended(page_at: Callable[..., Page], stage: Stage) -> None:
    page = page_at("/alarms")
    windows = panel(page, "Maintenance")
    windows.get_by_text("Plan maintenance").click()
    windows.get_by_label("Where").select_option(LEARNED[1])
    windows.get_by_label("For").select_option("4")
    windows.get_by_label("Why").fill("Yearly overhaul")
    windows.get_by_role("button", name="Plan it").click()
    row = windows.locator("tbody tr").first
    expect(row).to_contain_text("Yearly overhaul")
    expect(row).to_contain_text("holds")
    expect(windows.get_by_label("Why")).to_have_value("")
    told = stage.plant.get("/v1/maintenance?active=true").json()["windows"]
    assert [(one["machine"], one["reason"]) for one in told] == [("filler-1", "Yearly overhaul")]
    row.get_by_role("button", name="End").click()
    expect(row.get_by_role("cell", name="over", exact=True)).to_be_visible()
    assert stage.plant.get("/v1/maintenance?active=true").json()["windows"] == []


def test_what_the_api_refuses_is_said_and_what_was_typed_stays(page_at: Callable[..., Page]) -> None:
    page = page_at("/alarms")
    windows = panel(page, "Maintenance")
    windows.get_by_text("Plan maintenance").click()
    windows.get_by_label("Until, instead").fill("2020-01-01T10:00")
    windows.get_by_label("Why").fill("Too late")
    windows.get_by_role("button", name="Plan it").click()
    expect(page.locator(".q-notification")).to_be_visible()
    windows.get_by_label("Until, instead").fill("")
    windows.get_by_label("For").select_option("")
    windows.get_by_label("Why").press("Enter")  # the complaint may lie over the button
    expect(page.get_by_text("Say until when")).to_be_visible()
    windows.get_by_label("For").select_option("8")
    windows.get_by_label("From, in plant time").fill("9999-12-31T23:00")
    windows.get_by_label("Why").press("Enter")  # the complaint may lie over the button
    expect(page.get_by_text("That is no moment we can use")).to_be_visible()
    expect(windows.get_by_label("Why")).to_have_value("Too late")


def test_days_beyond_all_calendars_are_shown_as_far_as_there_are_any(page_at: Callable[..., Page]) -> None:
    page = page_at("/alarms?span=own&first=0001-01-01&last=9999-12-31")
    expect(panel(page, "Maintenance")).to_be_visible()


def test_the_rate_is_described_for_who_cannot_see_it(page_at: Callable[..., Page]) -> None:
    page = page_at("/alarms")
    chart = panel(page, "Alarm rate").locator(".ac-chart")
    expect(chart).to_have_attribute(
        "aria-label", re.compile(r"Alarms a day and machine, hour by hour: at most \d")
    )
    expect(chart.locator("svg")).to_contain_text("acceptable")


@pytest.mark.parametrize("width", [390, 1920])
def test_nothing_sticks_out_of_the_screen(page_at: Callable[..., Page], width: int) -> None:
    page = page_at("/alarms", width=width)
    expect(panel(page, "Line by line").locator("tbody tr").first).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth") <= width
