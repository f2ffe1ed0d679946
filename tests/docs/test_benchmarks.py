"""The README's table of benchmarks: there is a place for it, and whatever it names can be measured."""

from importlib import import_module

import pytest

from benchmarks.__main__ import MEASURED, with_table
from benchmarks.report import Figure
from benchmarks.servers import REPOSITORY

README = (REPOSITORY / "README.md").read_text(encoding="utf-8")
FAST = Figure(
    "a path", "its limit", "s", [1.0, 2.0, 4.0], [1.5, 3.0, 8.0], 2, at_most=True, beside={"alone": [1.25]}
)


def test_the_table_takes_its_place_and_leaves_everything_else_as_it_is() -> None:
    told = with_table(README, [FAST])
    assert "| a path | its limit | 1.5 (1.5 … 2) | ≤ 2 | yes | alone 1.25 |\n" in told
    assert with_table(told, [FAST]) == told
    for part in ("## How fast", "## Find your way", "Measured apart"):
        assert part in told


def test_a_readme_without_a_place_is_told_so() -> None:
    with pytest.raises(ValueError, match="no place for the table"):
        with_table("# Another", [FAST])


@pytest.mark.parametrize("name", MEASURED)
def test_every_row_is_a_script_of_its_own(name: str) -> None:
    module = import_module(f"benchmarks.{name}")
    assert callable(module.measure)
    assert module.__doc__
