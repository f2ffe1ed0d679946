"""The table of benchmarks in docs/research/performance.md has a place, and every row can be measured."""

from importlib import import_module

import pytest

from benchmarks.__main__ import MEASURED, with_table
from benchmarks.report import Figure
from benchmarks.servers import REPOSITORY

PAGE = (REPOSITORY / "docs" / "research" / "performance.md").read_text(encoding="utf-8")
FAST = Figure(
    "a path", "its limit", "s", [1.0, 2.0, 4.0], [1.5, 3.0, 8.0], 2, at_most=True, beside={"alone": [1.25]}
)


def test_table_is_replaced_and_the_rest_of_the_page_is_kept() -> None:
    page = with_table(PAGE, [FAST])
    assert "| a path | its limit | 1.5 (1.5 … 2) | ≤ 2 | yes | alone 1.25 |\n" in page
    assert with_table(page, [FAST]) == page
    for part in ("# Performance", "Measured separately"):
        assert part in page


def test_page_without_a_place_is_an_error() -> None:
    with pytest.raises(ValueError, match="no place for the table"):
        with_table("# Another", [FAST])


@pytest.mark.parametrize("name", MEASURED)
def test_every_row_is_a_script(name: str) -> None:
    module = import_module(f"benchmarks.{name}")
    assert callable(module.measure)
    assert module.__doc__
