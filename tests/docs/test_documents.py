"""Documents stay short, and tables in them name what exists."""

import re
from pathlib import Path

import pytest

from tests.docs.markdown import ROOT, text_of
from tests.faults.matrix import FAULTS

DECISIONS = sorted((ROOT / "docs" / "decisions").glob("[0-9]*.md"))


def first_column(file: Path, header: str) -> list[str]:
    _, _, table = text_of(file).partition(f"| {header} |")
    return [row.split("|")[1].strip() for row in table.split("\n\n")[0].splitlines()[2:]]


def test_readme_is_short() -> None:
    text = text_of(ROOT / "README.md")
    assert len(text.splitlines()) <= 140
    assert len(text.encode()) <= 8000


def test_architecture_is_short() -> None:
    assert len(text_of(ROOT / "ARCHITECTURE.md").splitlines()) <= 120


def test_glossary_has_at_most_60_terms_in_alphabetical_order() -> None:
    terms = first_column(ROOT / "docs" / "glossary.md", "term")
    assert len(terms) <= 60
    assert terms == sorted(terms, key=str.lower)


@pytest.mark.parametrize("file", DECISIONS, ids=lambda file: file.name)
def test_decision_is_one_short_record(file: Path) -> None:
    lines = text_of(file).splitlines()
    assert 10 <= len(lines) <= 25
    assert [line for line in lines if line.startswith("## ")] == ["## Context", "## Decision", "## Consequences"]
    assert re.match(rf"# {file.name[:4]}\. \S", lines[0])


def test_decisions_are_numbered_without_gaps() -> None:
    assert [int(file.name[:4]) for file in DECISIONS] == list(range(1, len(DECISIONS) + 1))


def test_reliability_table_has_every_quick_fault() -> None:
    rows = first_column(ROOT / "docs" / "research" / "reliability.md", "fault")
    assert sorted(rows) == sorted(name for name, fault in FAULTS.items() if fault.quick)
