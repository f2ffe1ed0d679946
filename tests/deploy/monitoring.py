"""Reads what Prometheus and Grafana are given."""

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from tests.conftest import require
from tests.deploy.conftest import REPOSITORY

PROMETHEUS = REPOSITORY / "deploy/prometheus"
GRAFANA = REPOSITORY / "deploy/grafana"
RUNBOOK = REPOSITORY / "deploy/runbook.md"
_NAME = re.compile(r"\b(?:alarmcast|process)_[a-z0-9_]+\b")
_MADE_BY_PROMETHEUS = {"up", "ALERTS"}


@dataclass(frozen=True)
class Rule:
    """One alert."""

    name: str
    expression: str
    severity: str
    annotations: dict[str, str]


@dataclass(frozen=True)
class Dashboard:
    """One dashboard."""

    name: str
    content: dict[str, Any]

    def expressions(self) -> Iterator[str]:
        """Yield what its panels ask, as Grafana would send it."""
        for panel in self.content["panels"]:
            for target in panel["targets"]:
                yield target["expr"].replace("$__rate_interval", "1m").replace("$instance", ".*")


def rules() -> list[Rule]:
    groups = yaml.safe_load((PROMETHEUS / "alerts.yml").read_text(encoding="utf-8"))["groups"]
    return [
        Rule(one["alert"], one["expr"], one["labels"]["severity"], one["annotations"])
        for group in groups
        for one in group["rules"]
    ]


def dashboards() -> list[Dashboard]:
    files = sorted((GRAFANA / "dashboards").glob("*.json"))
    return [Dashboard(file.stem, json.loads(file.read_text(encoding="utf-8"))) for file in files]


def metrics_in(expression: str) -> set[str]:
    """Return the names of metrics in an expression, without what is quoted in it."""
    return set(_NAME.findall(re.sub(r'"[^"]*"', "", expression)))


def exposed(text: str) -> set[str]:
    """Return every name that a sample of this text may have, those included that have none just now."""
    found: set[str] = set()
    for line in text.splitlines():
        if line.startswith("# TYPE "):
            _, _, name, kind = line.split()
            endings = ("_bucket", "_sum", "_count") if kind == "histogram" else ("",)
            found |= {name + ending for ending in endings}
    return found


def promtool(*words: str | Path, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Run Prometheus' own checker."""
    require(shutil.which("promtool"), "promtool (Debian's package prometheus)")
    return subprocess.run(["promtool", *words], cwd=cwd, capture_output=True, text=True, check=False)
