"""WCAG 2 AA by axe's rules, for every page, light and dark."""

from collections.abc import Callable

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, expect

from tests.page.conftest import LEARNED

PAGES = ("/", f"/machines/{LEARNED[0]}", "/alarms", "/learning", "/health", "/access")
RULES = {"runOnly": {"type": "tag", "values": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa"]}}


def broken(page: Page) -> list[tuple[str, str, list[str]]]:
    """Return the rules that a page breaks as it is now, and where."""
    result = Axe().run(page, options=RULES)
    return [
        (one["id"], one["help"], [node["target"] for node in one["nodes"][:3]])
        for one in result.response["violations"]
    ]


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("path", PAGES)
def test_a_page_breaks_no_rule(page_at: Callable[..., Page], path: str, *, dark: bool) -> None:
    page = page_at(path, dark=dark)
    expect(page.locator("main h1")).to_be_visible()
    page.wait_for_timeout(1000)
    assert broken(page) == []
