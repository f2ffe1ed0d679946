"""The example configuration for a real machine: it loads, and so does every line it only suggests."""

import re
from pathlib import Path

import pytest

from edge_agent.settings import SourceKind, load
from tests.deploy.conftest import REPOSITORY
from tests.deploy.dockerfile import Dockerfile

EXAMPLE = REPOSITORY / "deploy/edge.toml"
SUGGESTED = re.compile(r"^# (?=[a-z_]+ = )", re.MULTILINE)


def test_the_example_follows_a_log_in_plant_time() -> None:
    settings = load(EXAMPLE, {}, {})
    assert settings.source_kind is SourceKind.TAIL
    assert settings.source_path == Path("/var/log/machine/alarms.csv")
    assert settings.source_timezone == "Europe/Rome"
    assert settings.spool_path.is_absolute()


@pytest.mark.parametrize("number", range(len(SUGGESTED.findall(EXAMPLE.read_text(encoding="utf-8")))))
def test_every_line_that_is_commented_out_is_a_setting(tmp_path: Path, number: int) -> None:
    text = EXAMPLE.read_text(encoding="utf-8")
    start = [found.start() for found in SUGGESTED.finditer(text)][number]
    file = tmp_path / "edge.toml"
    file.write_text(text[:start] + text[start + len("# ") :], encoding="utf-8")
    load(file, {}, {})


def test_the_example_and_the_edge_image_have_the_spool_in_the_same_place(dockerfile: Dockerfile) -> None:
    assert dockerfile.environment("edge")["ALARMCAST_EDGE_SPOOL_PATH"] == str(load(EXAMPLE, {}, {}).spool_path)
