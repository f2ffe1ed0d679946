"""Pictures of every page of a running demo, light and dark: ``scripts/screenshots ADDRESS [FOLDER]``."""

import shutil
import sys
from pathlib import Path

from playwright.sync_api import Browser, sync_playwright

from tests.page.conftest import FLAGS

PAGES = {
    "fleet": ("/", ".ac-card"),
    "machine": ("/machines/padova/filler-1", ".ac-why li"),
    "alarms": ("/alarms", "main .ac-chart svg"),
    "learning": ("/learning", "main .ac-chart svg"),
    "health": ("/health", "main .ac-figures"),
}
SIZE = {"width": 1440, "height": 1000}
SETTLE = 3000  # milliseconds for what comes with the second look


def take(browser: Browser, address: str, folder: Path) -> None:
    """Write one picture a page and theme."""
    for dark in (False, True):
        theme = "dark" if dark else "light"
        context = browser.new_context(viewport=SIZE, color_scheme=theme)  # type: ignore[arg-type]  # a plain dict
        page = context.new_page()
        for name, (path, shown) in PAGES.items():
            page.goto(f"{address}{path}")
            page.locator(shown).first.wait_for()
            page.wait_for_timeout(SETTLE)
            page.screenshot(path=folder / f"{name}-{theme}.png")
        context.close()


def main() -> None:
    """Take the pictures of the demo at an address."""
    address, *rest = sys.argv[1:] or ["http://127.0.0.1:8080"]
    folder = Path(rest[0] if rest else "docs/screenshots")
    folder.mkdir(parents=True, exist_ok=True)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=list(FLAGS))
        take(browser, address.rstrip("/"), folder)
        browser.close()


if __name__ == "__main__":
    main()
