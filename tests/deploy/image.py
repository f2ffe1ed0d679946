"""Does what a Dockerfile says without Docker: a folder for the file system, a virtual environment for Python."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.metadata import distribution
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.deploy.dockerfile import Dockerfile, Instruction, NotUnderstood

_NOT_HERE = re.compile(r"\b(apt-get|useradd)\b")  # would change the computer the test runs on
_OURS = ("ALARMCAST_", "PYTHON", "VIRTUAL_ENV")


@dataclass
class Image:
    """A built target. Paths the Dockerfile speaks of lie below ``root``, its Python is the one in ``venv``."""

    root: Path
    venv: Path
    dockerfile: Dockerfile
    target: str
    size_before: int = 0
    left_out: list[str] = field(default_factory=list)

    def place(self, text: str) -> str:
        """Return a text with the image's paths in it moved below the root."""
        for path in sorted(self.dockerfile.paths()):
            text = re.sub(rf"(?<![\w./-]){re.escape(path)}(?![\w.-])", str(self.root / path[1:]), text)
        return text

    def environment(self) -> dict[str, str]:
        """Return the variables of a process in this image: its own, and of ours those that pip needs."""
        inherited = {name: value for name, value in os.environ.items() if not name.startswith(_OURS)}
        own = {name: self.place(value) for name, value in self.dockerfile.environment(self.target).items()}
        return inherited | own | {"PATH": f"{self.venv / 'bin'}:{os.environ['PATH']}"}

    def command(self, words: list[str]) -> list[str]:
        """Return a command whose program must be one that was installed into the image's Python."""
        program = self.venv / "bin" / words[0]
        assert program.exists(), f"{words[0]} is not installed in {self.target}"
        return [str(program), *words[1:]]

    def run(self, words: list[str], **environment: str) -> subprocess.CompletedProcess[str]:
        """Run a program of the image to its end."""
        return subprocess.run(
            self.command(words),
            env=self.environment() | environment,
            cwd=self.root,
            capture_output=True,
            text=True,
            check=False,
        )

    def entry(self, *words: str, **environment: str) -> subprocess.CompletedProcess[str]:
        """Run the ENTRYPOINT with these words after it."""
        return self.run([*self.dockerfile.last(self.target, "ENTRYPOINT").words(), *words], **environment)

    def installed(self) -> set[str]:
        """Return the names of the distributions in the image's Python, in lower case."""
        listed = self.run(["python", "-m", "pip", "list", "--format=freeze"])
        assert listed.returncode == 0, listed.stderr
        return {line.partition("==")[0].lower().replace("_", "-") for line in listed.stdout.splitlines()}

    @property
    def size(self) -> int:
        """Bytes on disk that building added to the bare Python, which brings pip."""
        return _bytes_below(self.venv) - self.size_before


@dataclass(frozen=True)
class Builder:
    """Builds targets below ``folder``, from the files of ``context`` that .dockerignore lets through."""

    dockerfile: Dockerfile
    context: Path
    folder: Path
    linked_extra: str | None = None  # links what this extra requires, instead of installing a gigabyte again

    def build(self, target: str) -> Image:
        """Execute every COPY and RUN of a target in order; stages it takes files from are built first."""
        root = self.folder / target / "root"
        root.mkdir(parents=True)
        venv = self.folder / target / "python"
        subprocess.run([sys.executable, "-m", "venv", venv], check=True)
        image = Image(root, venv, self.dockerfile, target, _bytes_below(venv))
        if self.linked_extra:
            link_requirements(self.linked_extra, image)
        workdir = root
        for one in self.dockerfile.lineage(target):
            if one.keyword == "WORKDIR":
                workdir = Path(image.place(one.text))
                workdir.mkdir(parents=True, exist_ok=True)
            elif one.keyword == "COPY":
                self._copy(one, workdir)
            elif one.keyword == "RUN" and _NOT_HERE.search(one.text):
                image.left_out.append(one.text)
            elif one.keyword == "RUN":
                self._run(one, image, workdir)
        return image

    def _copy(self, one: Instruction, workdir: Path) -> None:
        if one.flags or one.words() != [".", "."]:
            raise NotUnderstood(f"COPY {one.text}")
        for file in passed_by_dockerignore(self.context):
            goal = workdir / file
            goal.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(self.context / file, goal)

    def _run(self, one: Instruction, image: Image, workdir: Path) -> None:
        command = image.place(one.text)
        if self.linked_extra:
            command = re.sub(r"\bpip (wheel|install)\b", r"pip \1 --no-deps", command)
        with self._mounted(one, image):
            done = subprocess.run(
                ["sh", "-c", command],
                env=image.environment(),
                cwd=workdir,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                check=False,
            )
        assert done.returncode == 0, f"RUN {one.text}\n{done.stdout}"

    @contextmanager
    def _mounted(self, one: Instruction, image: Image) -> Iterator[None]:
        """Show folders of other stages for as long as one RUN lasts; caches are pip's own business."""
        links = []
        for mount in one.mounts():
            if mount["type"] == "bind":
                link = image.root / mount["target"][1:]
                link.symlink_to(self.build(mount["from"]).root / mount["source"][1:])
                links.append(link)
        yield
        for link in links:
            link.unlink()


def passed_by_dockerignore(context: Path) -> list[Path]:
    """Return the files Docker would send to the build, relative to the context."""
    lines = (context / ".dockerignore").read_text(encoding="utf-8").splitlines()
    patterns = [line for line in lines if line and not line.startswith("#")]
    passed = []
    for folder, folders, files in os.walk(context):
        here = Path(folder).relative_to(context)
        folders[:] = [name for name in folders if not _is_ignored(here / name, patterns)]
        passed += [here / name for name in files if not _is_ignored(here / name, patterns)]
    return passed


def _is_ignored(path: Path, patterns: list[str]) -> bool:
    """Let the last pattern decide that fits the path or a folder it lies in."""
    candidates = [path, *path.parents]
    ignored = False
    for pattern in patterns:
        shape = re.escape(pattern.removeprefix("!")).replace(r"\*\*/", "(.*/)?").replace(r"\*", "[^/]*")
        if any(re.fullmatch(shape, candidate.as_posix()) for candidate in candidates if candidate != Path()):
            ignored = not pattern.startswith("!")
    return ignored


def _bytes_below(folder: Path) -> int:
    return sum(file.lstat().st_size for file in folder.rglob("*") if not file.is_dir())


def link_requirements(extra: str, image: Image) -> None:
    """Link all that an extra of ours requires, and nothing else, from this Python's packages into the image's."""
    packages = next(image.venv.glob("lib/python*/site-packages"))
    for name in sorted(required_by("alarmcast", extra)):
        found = distribution(name)
        tops = {file.parts[0] for file in found.files or () if file.parts[0] not in ("..", "__pycache__")}
        for top in tops:
            link = packages / top
            if not link.exists():  # a namespace is shared by several distributions
                link.symlink_to(str(found.locate_file(top)))


def required_by(name: str, *extras: str) -> set[str]:
    """Return the distributions that one requires with these extras, and those that they require."""
    found: set[str] = set()
    waiting = [(name, frozenset(extras))]
    seen = set(waiting)
    while waiting:
        one, wanted = waiting.pop()
        for text in distribution(one).requires or ():
            requirement = Requirement(text)
            markers = [{"extra": extra} for extra in ("", *wanted)]
            if requirement.marker is None or any(requirement.marker.evaluate(marker) for marker in markers):
                key = canonicalize_name(requirement.name)
                found.add(key)
                following = (key, frozenset(requirement.extras))
                if following not in seen:
                    seen.add(following)
                    waiting.append(following)
    return found - {name}
