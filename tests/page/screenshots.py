"""Pictures of every page of a running demo, light and dark: ``scripts/screenshots ADDRESS DATA_DIR [FOLDER]``."""

import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from secrets import token_urlsafe

from playwright.sync_api import Browser, sync_playwright

from alarmcast import Client
from tests.page.conftest import FLAGS
from wire.enums import Role
from wire.rest.auth import SESSION_COOKIE

PAGES = {
    "fleet": ("/", ".ac-card"),
    "machine": ("/machines/padova/filler-1", ".ac-explanation li"),
    "alarms": ("/alarms", "main .ac-chart svg"),
    "notifications": ("/notifications", "main .ac-panel"),
    "learning": ("/learning", "main .ac-chart svg"),
    "health": ("/health", "main .ac-stats"),
    "access": ("/access", "main .ac-table tbody tr"),
}
SIZE = {"width": 1440, "height": 1000}
SETTLE = 3000  # milliseconds for what comes with the second look


def take(browser: Browser, address: str, token: str, folder: Path) -> None:
    """Write one picture a page and theme, as whoever has the session's token sees it."""
    for dark in (False, True):
        theme = "dark" if dark else "light"
        context = browser.new_context(viewport=SIZE, color_scheme=theme)  # type: ignore[arg-type]  # a plain dict
        cookie = {"name": SESSION_COOKIE, "value": token, "url": address}
        context.add_cookies([cookie])  # type: ignore[list-item]  # a plain dict
        page = context.new_page()
        for name, (path, shown) in PAGES.items():
            page.goto(f"{address}{path}")
            page.locator(shown).first.wait_for()
            page.wait_for_timeout(SETTLE)
            page.screenshot(path=folder / f"{name}-{theme}.png")
        context.close()


@contextmanager
def signed_in(address: str, data_dir: Path) -> Iterator[str]:
    """Yield the token of somebody who may see everything and is gone afterwards."""
    name, password = "maria", token_urlsafe()
    with Client(address, key=(data_dir / "admin.token").read_text(encoding="ascii").strip()) as local:
        local.users.add(name, role=Role.ADMIN, password=password)
        try:
            with Client(address) as visitor:
                yield visitor.session.login(name, password).token
        finally:
            local.users.remove(name)


def main() -> None:
    """Take the pictures of the demo at an address."""
    address, data_dir, *rest = sys.argv[1:]
    folder = Path(rest[0] if rest else "docs/screenshots")
    folder.mkdir(parents=True, exist_ok=True)
    with signed_in(address, Path(data_dir)) as token, sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium-headless-shell") or shutil.which("chromium"), args=list(FLAGS)
        )
        take(browser, address.rstrip("/"), token, folder)
        browser.close()


if __name__ == "__main__":
    main()
