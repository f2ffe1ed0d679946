"""Every link in the repository's Markdown leads to a file and an anchor that exist."""

from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from tests.docs.markdown import ROOT, anchors, links, markdown_files

INDEX = ROOT / "docs" / "README.md"


def target_of(file: Path, link: str) -> tuple[Path, str]:
    parts = urlsplit(link)
    path = (file.parent / unquote(parts.path)).resolve() if parts.path else file
    return path, unquote(parts.fragment)


def relative_links(file: Path) -> list[tuple[str, Path, str]]:
    return [(link, *target_of(file, link)) for link in links(file) if not urlsplit(link).scheme]


def broken_links(file: Path) -> list[str]:
    return [
        link
        for link, path, anchor in relative_links(file)
        if not path.exists() or (anchor and (path.suffix != ".md" or anchor not in anchors(path)))
    ]


@pytest.mark.parametrize("file", markdown_files(), ids=lambda file: str(file.relative_to(ROOT)))
def test_every_relative_link_and_anchor_exists(file: Path) -> None:
    assert broken_links(file) == []


def test_missing_file_and_missing_anchor_are_found(tmp_path: Path) -> None:
    file = tmp_path / "page.md"
    file.write_text(
        "# A title, here\n[a](#a-title-here) [b](#none) [c](none.md) [d](page.md#none) `[e](none.md)`\n"
    )
    assert broken_links(file) == ["#none", "none.md", "page.md#none"]


def test_every_page_can_be_reached_from_the_index() -> None:
    reached, waiting = set(), [INDEX]
    while waiting:
        file = waiting.pop()
        if file not in reached:
            reached.add(file)
            waiting += [path for _, path, _ in relative_links(file) if path.suffix == ".md"]
    pages = {file for file in markdown_files() if file.is_relative_to(ROOT / "docs")}
    assert pages - reached == set()


def test_every_picture_is_shown_on_a_page() -> None:
    shown = {path for file in markdown_files() for _, path, _ in relative_links(file)}
    pictures = {path for kind in ("png", "svg") for path in (ROOT / "docs").rglob(f"*.{kind}")}
    assert pictures - shown == set()
