"""WCAG 2 AA by axe's rules, for every page, light and dark."""

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from tests.page.accessibility import broken
from tests.page.conftest import LEARNED

PAGES = ("/", f"/machines/{LEARNED[0]}", "/alarms", "/notifications", "/learning", "/health", "/access")


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("path", PAGES)
def test_a_page_breaks_no_rule(page_at: Callable[..., Page], path: str, *, dark: bool) -> None:
    page = page_at(path, dark=dark)
    expect(page.locator("main h1")).to_be_visible()
    page.wait_for_timeout(1000)
    assert broken(page) == []
