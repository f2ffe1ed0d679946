"""The texts of the page by key: complete, used, and nowhere else."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import service.page
from service.page.texts import text, texts

_PAGE = Path(service.page.__file__).parent
_PYTHON, _SCRIPTS = sorted(_PAGE.rglob("*.py")), sorted(_PAGE.rglob("*.js"))
_KEY = re.compile(r"""\btext(?:_of)?\(\s*["'`]([a-z_]+\.[\w.]*\w)["'`]\s*[,)]""")
# A key with a computed part: text(f"common.nav.{name}"), text(`common.nav.${name}`), text("common.nav." + name)
_PREFIX = re.compile(r"""\btext(?:_of)?\(\s*(?:f["']|`|["'])([a-z_]+\.[\w.]*)(?:\{|\$\{|["']\s*\+)""")
# Two words of which the second is lower case and both are plain: "Sort by", but not "ac-tag ac-good" or "click".
_SENTENCE = re.compile(r"(?<![\w-])[A-Za-z][a-z]+,? [a-z]+(?![\w(-])")
_CODE = re.compile(r"[{}=<>;$]|\b(?:const|px|rem|var)\b|^ac-|/v1/")
_ATTRIBUTES = re.compile(r"""(?<![:\w-])(?:title|placeholder|aria-label|label|alt)="([^"]*[A-Za-z][^"]*)\"""")
# CSS classes, an error of Starlette, a command, the actor of the command line in the audit log.
_NOT_SHOWN = {"quiet small", "small quiet", "No response returned.", "alarmcast demo", "local admin"}
_EXAMPLE = re.compile(r"[a-z0-9-]+|[A-Z][a-z]+/[A-Z][a-z]+")  # a machine, a time zone


def used_keys() -> set[str]:
    return {key for file in _PYTHON + _SCRIPTS for key in _KEY.findall(file.read_text("utf-8"))}


def used_prefixes() -> set[str]:
    return {key for file in _PYTHON + _SCRIPTS for key in _PREFIX.findall(file.read_text("utf-8"))}


def test_every_key_that_the_page_uses_has_a_text() -> None:
    assert used_keys() - texts().keys() == set()
    assert [prefix for prefix in used_prefixes() if not any(key.startswith(prefix) for key in texts())] == []


def test_every_text_is_used() -> None:
    prefixes, used = tuple(used_prefixes()), used_keys()
    unused = [key for key in texts() if key.removesuffix(".one") not in used and not key.startswith(prefixes)]
    assert unused == []


def test_values_are_filled_in_and_one_has_its_own_text(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(texts(), "common.probe", "{count} machines at {site}")
    monkeypatch.setitem(texts(), "common.probe.one", "One machine at {site}")
    assert text("common.probe", count=2, site="padova") == "2 machines at padova"
    assert text("common.probe", count=1, site="padova") == "One machine at padova"


def literals(tree: ast.Module) -> Iterator[str]:
    """Yield the string literals of a module but docstrings, log messages, names of tasks and errors."""
    hidden: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            hidden.add(id(node.value))
        is_log = isinstance(node, ast.Call) and ast.unparse(node.func).startswith(("log.", "background_tasks."))
        if is_log or isinstance(node, ast.Raise):
            hidden |= {id(part) for part in ast.walk(node)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in hidden:
            yield node.value


def is_visible(literal: str) -> bool:
    """Return whether a literal looks like a text for people: a label or a phrase, not code, CSS or a header."""
    plain = literal.strip()
    return plain not in _NOT_SHOWN and not _CODE.search(plain) and bool(_SENTENCE.search(plain))


def script_texts(source: str) -> Iterator[str]:
    """Yield what a script shows: text between tags, labelling attributes, and quoted phrases outside templates."""
    source = re.sub(r"(?m)^\s*//.*$|\s// .*$", "", source)
    for template in re.findall(r"template: `(.*?)`,\n", source, re.DOTALL):
        without = re.sub(r"\{\{.*?\}\}|<code>.*?</code>|&\w+;", "", template, flags=re.DOTALL)
        yield from (
            found.strip() for found in re.findall(r">([^<>]*)<", without) if re.search("[A-Za-z]{2}", found)
        )
        yield from (found for found in _ATTRIBUTES.findall(template) if not _EXAMPLE.fullmatch(found))
    outside = re.sub(r"template: `.*?`,\n", "", source, flags=re.DOTALL)
    quoted = re.findall(r'"([^"\n]*)"', outside) + re.findall(r"`([^`\n]*)`", outside)
    yield from (found for found in quoted if is_visible(found) and not found.startswith("There is no text"))


@pytest.mark.parametrize("file", _PYTHON, ids=lambda file: str(file.relative_to(_PAGE)))
def test_no_python_file_of_the_page_has_a_text_of_its_own(file: Path) -> None:
    assert [literal for literal in literals(ast.parse(file.read_text("utf-8"))) if is_visible(literal)] == []


@pytest.mark.parametrize("file", _SCRIPTS, ids=lambda file: str(file.relative_to(_PAGE)))
def test_no_script_of_the_page_has_a_text_of_its_own(file: Path) -> None:
    assert list(script_texts(file.read_text("utf-8"))) == []


def test_a_text_outside_the_files_is_found() -> None:
    assert is_visible("Sort by")
    assert is_visible("No machines yet.")
    assert not is_visible("ac-tools ac-middle")
    assert not is_visible("application/json")
    assert list(literals(ast.parse('"""A docstring."""\nlabel("Not heard yet")'))) == ["Not heard yet"]
    script = """template: `<p :title="text('a.b')" title="As typed">Close {{ text('a.c') }}</p>`,
    const error = "It did not work";"""
    assert list(script_texts(script)) == ["Close", "As typed", "It did not work"]
