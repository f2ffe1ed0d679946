"""Examples of Python and of messages in the documents fit the code."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from edge_agent.settings import load_all
from edge_agent.sources.build import build_source, code_book
from tests.docs.markdown import ROOT, code_blocks, markdown_files
from wire.acks import Ack
from wire.clock import PlantClock
from wire.codec import decode, decode_batch


def blocks(file: Path, language: str) -> list[str]:
    return [block.text for block in code_blocks(file) if block.language == language]


def test_python_examples_pass_the_type_checker(tmp_path: Path) -> None:
    examples: list[Path] = []
    for file in markdown_files():
        for text in blocks(file, "python"):
            examples.append(tmp_path / f"example_{len(examples)}.py")
            examples[-1].write_text(text, encoding="utf-8")
    assert examples
    checked = subprocess.run(
        [sys.executable, "-m", "mypy", "--config-file", ROOT / "pyproject.toml", *examples],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
    )
    assert checked.returncode == 0, checked.stdout


def edge_examples() -> list[tuple[str, str]]:
    folder = ROOT / "docs" / "connect"
    return [(file.name, text) for file in sorted(folder.glob("*.md")) for text in blocks(file, "toml")]


@pytest.mark.parametrize(("name", "text"), edge_examples())
def test_edge_examples_configure_a_source(name: str, text: str, tmp_path: Path) -> None:
    del name
    file = tmp_path / "edge.toml"
    file.write_text(text, encoding="utf-8")
    for settings in load_all(file, {}, {"ALARMCAST_EDGE_SOURCE_PASSWORD": "secret"}):
        build_source(settings, PlantClock(), code_book(settings))


def test_json_examples_without_ellipsis_can_be_parsed() -> None:
    for file in markdown_files():
        for text in blocks(file, "json"):
            if "…" not in text:
                json.loads(text)


def test_mqtt_examples_are_messages_of_the_contract() -> None:
    events, ack, more = (text.encode() for text in blocks(ROOT / "docs" / "reference" / "mqtt.md", "json"))
    batch, later = decode_batch(events), decode_batch(more)
    assert [event.seq for event in batch.events] == [1]
    assert decode(Ack, ack).epoch == batch.epoch == later.epoch
    assert [(one.seq, one.kind) for one in later.transitions] == [(2, "cleared")]
    assert ([one.code for one in later.codes], later.rejected) == ([139], [])
