"""Accessibility rules, run in the real browser."""

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page

RULES = {"runOnly": {"type": "tag", "values": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa"]}}


def broken(page: Page) -> list[tuple[str, str, list[str]]]:
    """Return the rules that a page breaks as it is now, and where."""
    result = Axe().run(page, options=RULES)
    return [
        (one["id"], one["help"], [node["target"] for node in one["nodes"][:3]])
        for one in result.response["violations"]
    ]
