"""What makes an image one that may be trusted: said by hadolint, and where it is silent, here."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.deploy.conftest import REPOSITORY
from tests.deploy.dockerfile import KEYWORDS, Dockerfile, Instruction

FINISHED = ["edge", "service"]
# A release and the distribution beneath it: patches arrive with the next build, surprises do not.
PINNED = re.compile(r"python:3\.\d+-slim-[a-z]+")
HADOLINT = shutil.which("hadolint", path=str(Path(sys.executable).parent)) or "hadolint"


def everything(dockerfile: Dockerfile) -> list[Instruction]:
    return [one for stage in dockerfile.stages.values() for one in stage.instructions]


def test_hadolint_finds_nothing_to_say() -> None:
    checked = subprocess.run(
        [HADOLINT, "--no-color", REPOSITORY / "Dockerfile"], capture_output=True, text=True, check=False
    )
    assert (checked.returncode, checked.stdout) == (0, ""), checked.stdout + checked.stderr


def test_every_stage_stands_on_a_pinned_base_or_on_another_stage(dockerfile: Dockerfile) -> None:
    bases = {stage.base for stage in dockerfile.stages.values()} - set(dockerfile.stages)
    assert bases
    assert all(PINNED.fullmatch(base) for base in bases)
    assert len(bases) == 1, "what is built on one base and run on another need not fit"


def test_every_copy_takes_what_is_there_and_nothing_comes_from_an_address(dockerfile: Dockerfile) -> None:
    copies = [one for one in everything(dockerfile) if one.keyword == "COPY"]
    assert [(REPOSITORY / one.words()[0]).exists() for one in copies] == [True]
    addresses = [one for one in everything(dockerfile) if "://" in one.text and one.keyword != "HEALTHCHECK"]
    assert addresses == []


def test_adding_is_no_instruction_that_is_understood_here() -> None:
    assert "ADD" not in KEYWORDS


@pytest.mark.parametrize("target", FINISHED)
def test_a_finished_image_ends_as_nobody_with_one_health_check_in_exec_form(
    dockerfile: Dockerfile, target: str
) -> None:
    lineage = dockerfile.lineage(target)
    after = lineage[[one.keyword for one in lineage].index("USER") + 1 :]
    assert not [one for one in after if one.keyword in {"RUN", "COPY", "USER"}]
    [check] = [one for one in lineage if one.keyword == "HEALTHCHECK"]
    assert check.nested().keyword == "CMD"
    assert check.nested().is_exec_form


@pytest.mark.parametrize("target", FINISHED)
def test_a_finished_image_holds_neither_sources_nor_build_tools_nor_arguments(
    dockerfile: Dockerfile, target: str
) -> None:
    keywords = {one.keyword for one in dockerfile.lineage(target)}
    assert not keywords & {"ARG", "COPY"}
    assert not [one for one in dockerfile.lineage(target) if one.keyword == "RUN" and "apt-get" in one.text]


def test_no_secret_is_written_into_an_image(dockerfile: Dockerfile) -> None:
    names = [word.partition("=")[0] for one in everything(dockerfile) if one.keyword in {"ENV", "ARG"}
             for word in one.words()]  # fmt: skip
    assert names
    assert not [name for name in names if re.search("PASSWORD|SECRET|TOKEN|KEY|DATABASE_URL", name)]
