"""The two programs, run as a user runs them."""

import subprocess
import sys
from pathlib import Path

from tests.system.conftest import clean_environment

ROOT = Path(__file__).parents[2]


def run(*command: object, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(part) for part in command],
        capture_output=True,
        text=True,
        env=clean_environment() | environment,
        cwd=ROOT,
        check=False,
    )


def alarmcast(*arguments: object, **environment: str) -> subprocess.CompletedProcess[str]:
    return run(sys.executable, "-m", "service", *arguments, **environment)


def edge(*arguments: object, **environment: str) -> subprocess.CompletedProcess[str]:
    return run(sys.executable, "-m", "edge_agent", *arguments, **environment)


def is_one_sentence(done: subprocess.CompletedProcess[str], *words: str) -> None:
    assert done.returncode != 0
    assert "Traceback" not in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1, done.stderr
    for word in words:
        assert word in done.stderr
