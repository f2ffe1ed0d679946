"""Every page uses one clock and names its zone with every time."""

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from tests.page.conftest import LEARNED

ZONED = re.compile(r"\d\d:\d\d (?:[A-Z]{3,5}|GMT[+-]\d+)$")
SETTLED = {
    "/": ".ac-card",
    f"/machines/{LEARNED[0]}": ".ac-facts",
    "/alarms": "main .ac-chart svg",
    "/learning": "main .ac-table tbody tr:visible",
    "/health": "main .ac-table tbody tr:visible",
    "/access": "main .ac-table tbody tr",
}


@pytest.mark.parametrize("path", SETTLED)
def test_every_time_names_its_zone(page_at: Callable[..., Page], path: str) -> None:
    page = page_at(path)
    expect(page.locator(".ac-bar-end span", has_text=ZONED).first).to_be_visible()
    expect(page.locator(SETTLED[path]).first).to_be_visible()
    times = page.locator("time:visible").all_inner_texts()
    assert [text for text in times if not ZONED.search(text.removesuffix(" expired"))] == []
    said = page.locator("body").inner_text()
    bare = re.findall(r"(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun),? \d\d [A-Z][a-z]{2},? \d\d:\d\d(?! [A-Z])", said)
    assert bare == []


@pytest.mark.parametrize("path", [f"/machines/{LEARNED[0]}", "/alarms"])
def test_an_axis_of_moments_names_its_zone(page_at: Callable[..., Page], path: str) -> None:
    page = page_at(path)
    expect(page.locator(".ac-chart svg text", has_text=re.compile("^plant time, [A-Z]")).first).to_be_visible()
