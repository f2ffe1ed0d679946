"""The paper's comparison as a command: on raw logs and on windows, resumable, one sentence for a wrong file."""

import json
from dataclasses import replace
from datetime import UTC, datetime
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.console import Console
from typer.testing import CliRunner

from edge_agent.simulator.log_file import write_log
from service.cli import app
from service.errors import InputRejected
from service.experiment.notification_figures import FIGURES
from service.experiment.results import GROUPS, Figure, ResultRow
from service.experiment.table import notification_table, table

TARGETS = "26,28,29,31,137,139"
ROW = {"name", "preset", "seeds", "macro_f1", "forgetting", "average_precision", "brier_skill", "memory_seconds"}


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("experiment") / "alarms.csv.gz"
    write_log(path, machines=3, days=40, end=datetime(2026, 11, 16, tzinfo=UTC), seed=19)
    return path


def rows(*arguments: object) -> list[dict[str, Any]]:
    words = [str(word) for word in ("experiment", "--json", *arguments)]
    done = CliRunner().invoke(app, words, catch_exceptions=False)
    assert done.exit_code == 0, done.output
    found: list[dict[str, Any]] = json.loads(done.stdout)["rows"]
    return found


def quick(log: Path, out: Path, *more: object) -> list[dict[str, Any]]:
    return rows("--log", log, "--targets", TARGETS, "--epochs", 1, "--seeds", 1, "--out", out, *more)


@pytest.mark.parametrize("preset", ["paper", "product"])
def test_both_presets_run_on_a_raw_log_with_the_baselines_beside(log: Path, tmp_path: Path, preset: str) -> None:
    more = ("--preset", preset, "--strategies", "finetune,bat-ocdm", "--min-in", 0, "--min-out", 0)
    found = quick(log, tmp_path, *more)
    assert {"finetune", "bat-ocdm"} < {row["name"] for row in found}
    assert len(found) > 4, "baselines are rows too"
    for row in found:
        assert set(row) >= ROW | set(FIGURES)
        assert 0 <= row["notifications_per_machine_day"] < len(TARGETS.split(",")) * 24
        assert row["notification_precision"] is None or 0 <= row["notification_precision"] <= 1
        assert 0 <= row["onsets_announced"] <= 1
        assert set(row["macro_f1"]) >= {"total", "low", "medium", "high"}
        assert row["macro_f1"]["total"] is None or 0 <= row["macro_f1"]["total"] <= 1
    report = (tmp_path / "report.html").read_text()
    assert "<svg" in report
    assert "http://" not in report.replace("http://www.w3.org", "")
    assert "https://" not in report


def test_every_strategy_of_the_paper_runs(log: Path, tmp_path: Path) -> None:
    found = quick(log, tmp_path, "--strategies", "all", "--memory", 60)
    names = {"finetune", "cumulative", "task-random", "reservoir", "ocdm", "dataset-ocdm", "bat-ocdm"}
    assert names <= {row["name"] for row in found}


def test_an_interrupted_experiment_goes_on_from_what_is_finished(log: Path, tmp_path: Path) -> None:
    quick(log, tmp_path, "--strategies", "finetune")
    finished = {path: path.stat().st_mtime_ns for path in (tmp_path / "runs").rglob("*") if path.is_file()}
    assert finished
    found = quick(log, tmp_path, "--strategies", "finetune,reservoir")
    assert {"finetune", "reservoir"} < {row["name"] for row in found}
    assert all(path.stat().st_mtime_ns == then for path, then in finished.items())


def test_windows_as_the_publisher_cut_them_load_directly(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    parts = {}
    for part, count in (("train", 900), ("test", 300)):
        parts[f"x_{part}"] = rng.choice(np.array([0, 26, 29, 31, 139], dtype=np.uint8), (count, 20))
        parts[f"y_{part}"] = rng.choice(np.array([0, 0, 26, 29, 139], dtype=np.uint8), (count, 6))
        parts[f"stratify_{part}"] = np.repeat(np.array([0, 1]), count // 2)
    file = tmp_path / "windows.npz"
    np.savez(file, **parts)  # type: ignore[arg-type]
    found = rows(
        "--windows", file, "--targets", "26,29,139", "--strategies", "bat-ocdm", "--preset", "paper",
        "--epochs", 1, "--seeds", 2, "--memory", 100, "--out", tmp_path / "out",
    )  # fmt: skip
    (ours,) = [row for row in found if row["name"] == "bat-ocdm"]
    assert ours["seeds"] == 2


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--log", "/nowhere.csv"], "/nowhere.csv"),
        (["--windows", "/nowhere.npz"], "/nowhere.npz"),
        (["--log", __file__], "test_command.py"),
        (["--windows", __file__], "test_command.py"),
        ([], "--log"),
    ],
)
def test_a_wrong_file_gives_one_clear_sentence(tmp_path: Path, arguments: list[str], words: str) -> None:
    command = ["experiment", "--targets", "26", "--out", str(tmp_path), *arguments]
    with pytest.raises(InputRejected, match=words):
        CliRunner().invoke(app, command, catch_exceptions=False)


@pytest.mark.parametrize(("width", "spread"), [(80, False), (124, True)])
def test_table_fits_the_screen_and_cuts_no_figure(width: int, spread: bool) -> None:  # noqa: FBT001
    figure, skill = Figure(0.478, 0.012), Figure(-11.86, 0.012)
    line = ResultRow(
        name="dataset-ocdm",
        seeds=3,
        macro_f1=dict.fromkeys(GROUPS, figure),
        macro_f1_all_labels=figure,
        forgetting=dict.fromkeys(GROUPS, figure),
        average_precision=figure,
        forgetting_of_precision=figure,
        brier_skill=replace(skill, mean=-0.86) if spread else skill,
        calibration_error=figure,
        notifications=dict.fromkeys(FIGURES, figure),
        memory_seconds=figure,
    )
    page = Console(width=width, record=True, file=StringIO())
    page.print(table([line], title="", spread=spread))
    page.print(notification_table([line]))
    shown = page.export_text()
    assert "…" not in shown
    assert shown.count("(0.478)") == 5
    assert ("0.478 ±0.012" in shown) == spread
    assert max(map(len, shown.splitlines())) <= width
