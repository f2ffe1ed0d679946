"""Rules of structure: where libraries are imported, and what tests may share."""

import ast
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path

import pytest

TESTS = Path(__file__).parent


def imported(file: Path) -> Iterator[str]:
    """Yield the modules that a file imports, and the names it takes from them."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module:
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)


def is_test_module(name: str) -> bool:
    return name.startswith("tests.") and any(part.startswith("test_") for part in name.split("."))


def test_no_module_imports_a_test_module() -> None:
    found = [
        f"{file.relative_to(TESTS)} imports {name}"
        for file in TESTS.rglob("*.py")
        for name in imported(file)
        if is_test_module(name)
    ]
    assert found == [], "what two test modules share belongs in tests/support"


# Where each heavy library may be imported; every other file of the service must do without it.
_LIBRARIES = {
    "sqlalchemy": ("database/*", "*/store.py", "*/*_store.py"),
    "alembic": ("database/*",),
    "fastapi": ("http/*", "page/*", "*/api.py", "*/*_api.py", "*/build.py", "auth/middleware.py"),
    "paho": ("messaging/*", "broker_access/dynamic_security.py"),
    "torch": ("learning/torch_trainer.py",),
    "nicegui": ("page/*",),
    "typer": ("cli/*", "__main__.py", "demo/*", "experiment/*"),
}


@pytest.mark.parametrize("library", _LIBRARIES)
def test_a_heavy_library_is_imported_only_in_the_files_named_for_it(library: str) -> None:
    service = TESTS.parent / "service"
    outside = [
        name
        for file in service.rglob("*.py")
        if not any(fnmatch(name := str(file.relative_to(service)), allowed) for allowed in _LIBRARIES[library])
        and any(module.split(".")[0] == library for module in imported(file))
    ]
    assert outside == []


def test_answers_of_operators_are_read_by_nothing_that_learns_or_forecasts() -> None:
    root = TESTS.parent
    folders = (root / "service/learning", root / "service/forecasts", root / "forecasting")
    files = [
        file.name
        for folder in folders
        for file in folder.rglob("*.py")
        if "service.database.tables.answers" in imported(file)
    ]
    assert files == ["enrolment_store.py"], "it only deletes them with their machine"
