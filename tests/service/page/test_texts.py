"""The page's texts by key."""

import re
from pathlib import Path

import pytest

import service.page
from service.page.texts import text, texts

_PAGE = Path(service.page.__file__).parent
_USED = re.compile(r"""\btext\(\s*["'`]([a-z_]+\.[\w.]+)["'`]""")


def used_keys() -> set[str]:
    files = [file for kind in ("*.py", "*.js") for file in _PAGE.rglob(kind)]
    return {key for file in files for key in _USED.findall(file.read_text("utf-8"))}


def test_every_key_that_the_page_uses_has_a_text() -> None:
    assert used_keys() - texts().keys() == set()


def test_values_are_filled_in_and_one_has_its_own_text(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(texts(), "common.probe", "{count} machines at {site}")
    monkeypatch.setitem(texts(), "common.probe.one", "One machine at {site}")
    assert text("common.probe", count=2, site="padova") == "2 machines at padova"
    assert text("common.probe", count=1, site="padova") == "One machine at padova"
