"""Helpers of tests of the access page."""

from playwright.sync_api import Locator, Page, expect

from tests.system.conftest import Plant

MACHINES = ("padova/filler-1", "padova/filler-2", "verona/capper-1")  # enrolled before the first test


def region(page: Page, name: str) -> Locator:
    return page.get_by_role("region", name=name)


def row(page: Page, name: str, text: str) -> Locator:
    return region(page, name).get_by_role("row").filter(has_text=text)


def read_secret(page: Page) -> str:
    """Return the secret that is shown, and close its dialog."""
    dialog = page.get_by_role("dialog")
    secret = dialog.get_by_label("Secret, shown once").inner_text()
    assert len(secret) > 20
    dialog.get_by_role("button", name="Close").click()
    expect(dialog).to_be_hidden()
    return secret


def assert_not_kept(plant: Plant, page: Page, secret: str) -> None:
    """Check that a secret is in no element, URL, browser storage or service log."""
    kept = page.evaluate("JSON.stringify([localStorage, sessionStorage, document.cookie, history.state])")
    assert secret not in page.content() + page.url + kept
    page.reload()
    expect(page.get_by_role("heading", name="Users", exact=True)).to_be_visible()
    assert secret not in page.content()
    assert secret not in plant.service.words()
