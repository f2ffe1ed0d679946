"""Reads docker-compose.yml as far as the tests need it, with defaults taken from the Dockerfile."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from tests.deploy.dockerfile import Dockerfile


@dataclass(frozen=True)
class Container:
    """One service of the compose file."""

    name: str
    wishes: dict[str, Any]

    @property
    def target(self) -> str | None:
        """The Dockerfile's target, or None if the image is someone else's."""
        build = self.wishes.get("build")
        return str(build["target"]) if build else None

    @property
    def is_agent(self) -> bool:
        return self.target == "edge"

    @property
    def environment(self) -> dict[str, str]:
        return dict(self.wishes.get("environment", {}))

    @property
    def mounts(self) -> list[tuple[str, str, bool]]:
        """What is mounted where, and whether for reading only."""
        split = [str(volume).split(":") for volume in self.wishes.get("volumes", [])]
        return [(parts[0], parts[1], parts[2:] == ["ro"]) for parts in split]

    def command(self, dockerfile: Dockerfile) -> list[str]:
        """Return the whole command line: what is said here, or else by the Dockerfile."""
        if "entrypoint" in self.wishes:  # with another entry point the image's CMD no longer counts
            return [*self.wishes["entrypoint"], *self.wishes.get("command", [])]
        assert self.target
        entry, default = (dockerfile.last(self.target, keyword).words() for keyword in ("ENTRYPOINT", "CMD"))
        return [*entry, *self.wishes.get("command", default)]


@dataclass(frozen=True)
class Compose:
    """The whole file."""

    containers: dict[str, Container]
    volumes: set[str]

    @property
    def agents(self) -> list[Container]:
        return [container for container in self.containers.values() if container.is_agent]


def read(*files: Path) -> Compose:
    """Read a compose file and those laid over it; anchors are resolved by YAML itself."""
    loaded: dict[str, Any] = {}
    for file in files:
        loaded = _laid_over(loaded, yaml.safe_load(file.read_text(encoding="utf-8")))
    containers = {name: Container(name, wishes) for name, wishes in loaded["services"].items()}
    return Compose(containers, set(loaded["volumes"]))


def _laid_over(below: Any, above: Any, key: str = "") -> Any:
    """Merge as compose does: mappings key by key, most lists one after the other, commands replaced."""
    if isinstance(below, dict) and isinstance(above, dict):
        merged = {name: _laid_over(below[name], value, name) if name in below else value
                  for name, value in above.items()}  # fmt: skip
        return below | merged
    if isinstance(below, list) and isinstance(above, list) and key not in {"command", "entrypoint", "test"}:
        return [*below, *above]
    return above
