"""The reader that the other tests trust: lines joined, stages inherited, .dockerignore obeyed."""

from pathlib import Path

import pytest

from tests.deploy.dockerfile import Dockerfile, NotUnderstood, read
from tests.deploy.image import passed_by_dockerignore

TEXT = r"""
# a comment
FROM python:3.11-slim AS base
WORKDIR /here
ENV A=1 \
    # a comment between
    B="two words"

FROM base AS end
ENV A=3
RUN --mount=type=bind,from=base,source=/wheels,target=/mnt \
    --mount=type=cache,target=/cache \
    pip install --no-index . \
    && true
ENTRYPOINT ["a program", "b"]
CMD c d
"""


def parsed(tmp_path: Path, text: str = TEXT) -> Dockerfile:
    file = tmp_path / "Dockerfile"
    file.write_text(text)
    return read(file)


def test_continued_lines_are_one_instruction_and_flags_come_off_its_front(tmp_path: Path) -> None:
    run = parsed(tmp_path).last("end", "RUN")
    assert run.text.split() == ["pip", "install", "--no-index", ".", "&&", "true"]
    assert [mount["target"] for mount in run.mounts()] == ["/mnt", "/cache"]


def test_a_stage_inherits_and_overrides_what_it_stands_on(tmp_path: Path) -> None:
    assert parsed(tmp_path).environment("end") == {"A": "3", "B": "two words"}
    assert parsed(tmp_path).environment("base") == {"A": "1", "B": "two words"}


def test_exec_form_and_shell_form_both_give_words(tmp_path: Path) -> None:
    dockerfile = parsed(tmp_path)
    assert dockerfile.last("end", "ENTRYPOINT").words() == ["a program", "b"]
    assert dockerfile.last("end", "CMD").words() == ["c", "d"]


def test_paths_of_the_image_are_those_its_instructions_name(tmp_path: Path) -> None:
    assert parsed(tmp_path).paths() == {"/here", "/wheels", "/mnt"}


@pytest.mark.parametrize("text", ["RUN true", "FROM a AS b\nADD x y", "FROM a as b"])
def test_what_the_reader_does_not_know_it_refuses(tmp_path: Path, text: str) -> None:
    with pytest.raises(NotUnderstood):
        parsed(tmp_path, text)


def test_the_last_fitting_line_of_dockerignore_decides(tmp_path: Path) -> None:
    for name in ("a/keep.py", "a/__pycache__/x.pyc", "b/away.py", "top.toml", "other.toml"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    (tmp_path / ".dockerignore").write_text("# a comment\n*\n!a\n!top.toml\n**/__pycache__\n")
    assert {file.as_posix() for file in passed_by_dockerignore(tmp_path)} == {"a/keep.py", "top.toml"}
