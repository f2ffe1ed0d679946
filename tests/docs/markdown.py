"""Read the repository's Markdown: files, code, links and anchors."""

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
_FENCE = re.compile(r"^(\s*)(`{3,}|~{3,})(\w*)[^\n]*\n(.*?)^\s*\2\s*$", re.MULTILINE | re.DOTALL)
_SPAN = re.compile(r"(?<!`)(`+)(?!`)(.+?)(?<!`)\1(?!`)", re.DOTALL)
_LINK = re.compile(r"\[(?:[^\[\]]|\[[^\]]*\])*\]\(<?([^()\s>]+)>?(?:\s+\"[^\"]*\")?\)")
_REFERENCE = re.compile(r"^\[[^\]]+\]:\s+(\S+)", re.MULTILINE)
_HTML = re.compile(r"<(?:a|img)\b[^>]*?\b(?:href|src)=\"([^\"]+)\"")
_HTML_ANCHOR = re.compile(r"<\w+\b[^>]*?\b(?:id|name)=\"([^\"]+)\"")
_HEADING = re.compile(r"^#{1,6}\s+(.+?)\s*#*$", re.MULTILINE)


class Code(NamedTuple):
    """A piece of code and where it is shown."""

    file: Path
    text: str
    language: str = ""


@cache
def markdown_files() -> list[Path]:
    """Return every Markdown file of the repository, without those of installed packages."""
    return sorted(
        path
        for path in ROOT.rglob("*.md")
        if not any(
            part.startswith(".") or part in {"node_modules", "data"} for part in path.relative_to(ROOT).parts
        )
    )


@cache
def text_of(file: Path) -> str:
    return file.read_text(encoding="utf-8")


def code_blocks(file: Path) -> Iterator[Code]:
    """Yield the fenced blocks of a file."""
    for match in _FENCE.finditer(text_of(file)):
        yield Code(file, match[4], match[3])


def code_spans(file: Path) -> Iterator[Code]:
    """Yield the inline code of a file."""
    for match in _SPAN.finditer(_FENCE.sub("", text_of(file))):
        yield Code(file, " ".join(match[2].split()))


def links(file: Path) -> list[str]:
    """Return the targets of all links and images of a file."""
    text = _SPAN.sub("", _FENCE.sub("", text_of(file)))
    return [target for pattern in (_LINK, _REFERENCE, _HTML) for target in pattern.findall(text)]


@cache
def anchors(file: Path) -> frozenset[str]:
    """Return the anchors of a file as GitHub makes them from headings."""
    text = _FENCE.sub("", text_of(file))
    found: dict[str, int] = {}
    for heading in _HEADING.findall(text):
        plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)
        slug = re.sub(r"[^\w\- ]", "", plain.lower()).replace(" ", "-")
        found[slug] = found.get(slug, -1) + 1
    numbered = {f"{slug}-{n}" for slug, last in found.items() for n in range(1, last + 1)}
    return frozenset(found) | numbered | frozenset(_HTML_ANCHOR.findall(text))
