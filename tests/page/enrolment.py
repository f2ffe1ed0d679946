"""The form that enrols a machine."""

from playwright.sync_api import Locator, Page


def form_of(page: Page) -> Locator:
    return page.get_by_role("form", name="Enrol a machine")
