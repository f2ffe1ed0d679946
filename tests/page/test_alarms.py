"""The alarms page in a real browser: the figures of the API, in a view held by its URL."""

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


def wait_for_figures(page: Page, address: str) -> None:
    """Wait until a choice is in the URL and its figures are shown; until then the page moves."""
    page.wait_for_url(address)
    expect(page.locator(".ac-metrics[aria-busy]")).to_have_attribute("aria-busy", "false")


def query(page: Page) -> dict[str, list[str]]:
    return parse_qs(urlsplit(page.url).query)


def test_the_top_alarms_are_those_of_the_api_with_cumulative_shares(
    page_at: Callable[..., Page], stage: Stage
) -> None:
    page = page_at("/alarms?span=30d")
    rows = panel(page, "Top 10 alarms (bad actors)").locator("tbody tr")
    expect(rows.first).to_be_visible()
    since = datetime.now(UTC) - timedelta(days=30)
    top = stage.plant.get(f"/v1/alarm-metrics?since={since:%Y-%m-%dT%H:%M:%SZ}").json()["top"]
    expect(rows).to_have_count(len(top))
    for row, code in zip(rows.all(), top, strict=True):
        expect(row).to_contain_text(code["text"])
        expect(row).to_contain_text(f"code {code['code']}")
    cumulative = f"{round(100 * sum(code['share'] for code in top))} %"
    expect(rows.last.locator("td").nth(3)).to_have_text(cumulative)


def test_a_choice_is_in_the_url_and_a_shared_url_shows_the_same(page_at: Callable[..., Page]) -> None:
    page = page_at("/alarms")
    chosen(page, "Machine").select_option(LEARNED[1])
    expect(panel(page, "Breakdown").locator("tbody tr")).to_have_count(1)
    chosen(page, "Shift").select_option("late")
    chosen(page, "Period").select_option("30d")
    wait_for_figures(page, "**span=30d*")
    tab(page, "day").click()
    wait_for_figures(page, "**by=day*")
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
    expect(chosen(other, "Period")).to_have_value("30d")
    expect(tab(other, "day")).to_have_attribute("aria-pressed", "true")
    lines = panel(page, "Breakdown").locator("tbody tr").all_inner_texts()
    assert lines
    assert panel(other, "Breakdown").locator("tbody tr").all_inner_texts() == lines


def test_a_custom_range_is_chosen_and_kept(page_at: Callable[..., Page]) -> None:
    page = page_at("/alarms")
    chosen(page, "Period").select_option("custom")
    first = f"{datetime.now(UTC) - timedelta(days=3):%Y-%m-%d}"
    page.get_by_role("textbox", name="From", exact=True).fill(first)
    wait_for_figures(page, f"**first={first}*")
    tab(page, "day").click()
    expect(panel(page, "Breakdown").locator("tbody tr")).to_have_count(4)
    expect(page.get_by_role("textbox", name="From", exact=True)).to_have_value(first)


def test_a_reversed_range_is_an_error(page_at: Callable[..., Page]) -> None:
    page = page_at("/alarms?span=custom&first=2026-02-02&last=2026-01-01")
    expect(page.get_by_role("alert").filter(has_text="first day")).to_be_visible()


def test_an_unknown_machine_is_an_error(page_at: Callable[..., Page]) -> None:
    page = page_at("/alarms?site=padova&machine=nobody")
    expect(page.get_by_role("alert").filter(has_text="nobody")).to_be_visible()


def test_the_breakdown_sorts_by_a_clicked_column(page_at: Callable[..., Page]) -> None:
    page = page_at("/alarms?span=30d")
    rows = panel(page, "Breakdown").locator("tbody tr")
    expect(rows).to_have_count(len(LEARNED))
    heading = panel(page, "Breakdown").get_by_role("button", name="alarms", exact=True)
    heading.click()

    def counts() -> list[int]:
        return [int(row.locator("td").nth(1).inner_text().replace(",", "")) for row in rows.all()]

    down = counts()
    assert down == sorted(down, reverse=True)
    heading.click()
    assert counts() == sorted(down)
    assert len(set(down)) > 1


@pytest.mark.parametrize("title", ["Top 10 alarms (bad actors)", "Alarm floods", "Chattering alarms"])
def test_each_list_is_exported_as_csv_with_as_many_rows(
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
    if title != "Top 10 alarms (bad actors)":  # the page shows ten codes, the CSV all
        expect(listed.locator("tbody tr")).to_have_count(min(100, len(rows)))
    assert len(rows) >= listed.locator("tbody tr").count() > 0


def test_all_alarms_are_exported_as_csv(page_at: Callable[..., Page], stage: Stage) -> None:
    page = page_at("/alarms?site=padova&machine=filler-1&span=24h")
    link = page.get_by_role("link", name="All alarms as CSV")
    expect(link).to_have_attribute("href", re.compile("machine=filler-1"))
    answer = stage.plant.get(link.get_attribute("href") or "")
    machines = {row["machine"] for row in csv.DictReader(io.StringIO(answer.text))}
    assert machines == {"filler-1"}


def test_an_admin_imports_responses_from_a_csv_file_and_a_wrong_file_is_refused(
    page_at: Callable[..., Page], stage: Stage
) -> None:
    page = page_at("/alarms")
    catalogue, dialog = panel(page, "Alarm catalogue"), page.get_by_role("dialog")
    catalogue.get_by_role("button", name="Import CSV").click()
    chooser = dialog.get_by_label("CSV file")
    chooser.set_input_files({"name": "wrong.csv", "mimeType": "text/csv", "buffer": b"code;text\n1;a\n"})
    dialog.get_by_role("button", name="Import").click()
    expect(dialog).to_contain_text("A catalogue must start with the line code,text,severity,target")
    rows = "code,text,severity,target,cause,action\n90001,Guard 7 open,low,no,Guard left open,Close guard 7\n"
    chooser.set_input_files({"name": "responses.csv", "mimeType": "text/csv", "buffer": rows.encode()})
    dialog.get_by_role("button", name="Import").click()
    expect(page.get_by_text("1 codes imported, 1 of them new.")).to_be_visible()
    assert stage.plant.get("/v1/catalogue/90001").json()["response"]["action"] == "Close guard 7"


def test_a_flood_links_to_its_machine(page_at: Callable[..., Page]) -> None:
    page = page_at("/alarms?span=30d")
    link = panel(page, "Alarm floods").locator("tbody a").first
    expect(link).to_have_attribute("href", re.compile("^/machines/padova/filler-"))


def test_a_shelved_alarm_is_shown_with_user_and_reason_and_unshelved(
    page_at: Callable[..., Page], stage: Stage
) -> None:
    wish = {"code": 139, "minutes": 60, "reason": "Sensor <b>on</b> order", "by": "Anna"}
    assert stage.plant.post(f"/v1/machines/{LEARNED[0]}/shelves", json=wish).status_code == 201
    page = page_at("/alarms")
    row = panel(page, "Shelved alarms").locator("tbody tr")
    expect(row).to_contain_text("Sensor <b>on</b> order")
    expect(row).to_contain_text("Anna")
    row.get_by_role("button", name="Unshelve").click()
    expect(panel(page, "Shelved alarms")).to_contain_text("No alarms are shelved.")
    assert stage.plant.get("/v1/shelves").json()["shelves"] == []


def test_maintenance_is_scheduled_shown_and_ended(page_at: Callable[..., Page], stage: Stage) -> None:
    page = page_at("/alarms")
    windows = panel(page, "Maintenance")
    windows.get_by_text("Schedule maintenance").click()
    windows.get_by_label("Site or machine").select_option(LEARNED[1])
    windows.locator("select[name=hours]").select_option("4")
    windows.get_by_label("Reason").fill("Yearly overhaul")
    windows.get_by_role("button", name="Schedule", exact=True).click()
    row = windows.locator("tbody tr").first
    expect(row).to_contain_text("Yearly overhaul")
    expect(row).to_contain_text("active")
    expect(windows.get_by_label("Reason")).to_have_value("")
    told = stage.plant.get("/v1/maintenance?active=true").json()["windows"]
    assert [(one["machine"], one["reason"]) for one in told] == [("filler-1", "Yearly overhaul")]
    row.get_by_role("button", name="End").click()
    expect(row.get_by_role("cell", name="ended", exact=True)).to_be_visible()
    assert stage.plant.get("/v1/maintenance?active=true").json()["windows"] == []


def test_an_api_error_is_shown_and_values_stay(page_at: Callable[..., Page]) -> None:
    page = page_at("/alarms")
    windows = panel(page, "Maintenance")
    windows.get_by_text("Schedule maintenance").click()
    windows.get_by_label("End (instead of duration)").fill("2020-01-01T10:00")
    windows.get_by_label("Reason").fill("Too late")
    windows.get_by_role("button", name="Schedule", exact=True).click()
    expect(page.locator(".q-notification")).to_be_visible()
    windows.get_by_label("End (instead of duration)").fill("")
    windows.locator("select[name=hours]").select_option("")
    windows.get_by_label("Reason").press("Enter")  # the notification may cover the button
    expect(page.get_by_text("Choose a duration or enter the end.")).to_be_visible()
    windows.locator("select[name=hours]").select_option("8")
    windows.get_by_label("Start (plant time").fill("9999-12-31T23:00")
    windows.get_by_label("Reason").press("Enter")  # the notification may cover the button
    expect(page.get_by_text("Invalid date.")).to_be_visible()
    expect(windows.get_by_label("Reason")).to_have_value("Too late")


def test_days_out_of_range_are_clamped(page_at: Callable[..., Page]) -> None:
    page = page_at("/alarms?span=custom&first=0001-01-01&last=9999-12-31")
    expect(panel(page, "Maintenance")).to_be_visible()


def test_the_rate_chart_has_a_description(page_at: Callable[..., Page]) -> None:
    page = page_at("/alarms")
    chart = panel(page, "Alarm rate").locator(".ac-chart")
    expect(chart).to_have_attribute("aria-label", re.compile(r"Alarms per machine-day, by hour: peak \d"))
    expect(chart.locator("svg")).to_contain_text("acceptable")


@pytest.mark.parametrize("width", [390, 1920])
def test_the_page_fits_the_screen(page_at: Callable[..., Page], width: int) -> None:
    page = page_at("/alarms", width=width)
    expect(panel(page, "Breakdown").locator("tbody tr").first).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth") <= width
