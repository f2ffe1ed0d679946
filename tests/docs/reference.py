"""Write the reference pages that are made from the code; ``scripts/reference`` runs this."""

from collections.abc import Callable
from pathlib import Path

from tests.docs import cli_page, metrics_page, rest_page, settings_page
from wire import asyncapi

FOLDER = Path(__file__).parents[2] / "docs" / "reference"
PAGES: dict[str, Callable[[], str]] = {
    "settings.md": settings_page.page,
    "rest.md": rest_page.page,
    "cli.md": cli_page.page,
    "metrics.md": metrics_page.page,
    "asyncapi.json": asyncapi.text,
}


if __name__ == "__main__":
    for name, build in PAGES.items():
        (FOLDER / name).write_text(build(), encoding="utf-8")
