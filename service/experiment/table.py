"""The paper's table, with the baselines' rows, on a screen and as JSON."""

from collections.abc import Sequence
from math import isnan
from typing import Any

from rich import box
from rich.table import Table

from service.experiment.results import GROUPS, Figure, ResultRow


def table(rows: Sequence[ResultRow], *, title: str, spread: bool = True) -> Table:
    """Return S_T and below it F_T for all codes and by group, then what F1 does not tell.

    Without ``spread`` it fits a screen of 80 columns.
    """
    caption = _CAPTION + (_SPREAD if spread else _NO_SPREAD)
    drawn = Table(title=title, caption=caption, caption_justify="left", show_lines=True)
    if not spread:
        drawn.box, drawn.padding = box.SIMPLE_HEAD, (0, 0)
    drawn.add_column("forecaster")
    for group in (*GROUPS, "precision", "Brier\nskill", "cal.\nerror", "memory\n(s)"):
        drawn.add_column(group, justify="right")
    for line in rows:
        drawn.add_row(
            line.name,
            *(_pair(line.macro_f1[group], line.forgetting.get(group), spread) for group in GROUPS),
            _pair(line.average_precision, line.forgetting_of_precision, spread),
            _shown(line.brier_skill, "+", spread),
            f"{line.calibration_error.mean:.3f}",
            "" if line.memory_seconds is None else f"{line.memory_seconds.mean:.2f}",
        )
    return drawn


def notification_table(rows: Sequence[ResultRow]) -> Table:
    """Return what people would be notified of, and the scores on cold codes."""
    drawn = Table(caption=NOTIFICATION_CAPTION, caption_justify="left", box=box.SIMPLE_HEAD, padding=(0, 0))
    drawn.add_column("forecaster")
    for title in NOTIFICATION_HEADS:
        drawn.add_column(title.replace(" ", "\n"), justify="right")
    for line in rows:
        drawn.add_row(line.name, *notification_cells(line))
    return drawn


def notification_cells(line: ResultRow) -> list[str]:
    """Return the figures of ``NOTIFICATION_HEADS``."""
    forms = ("{:.2f}", "{:.3f}", "{:.3f}", "{:.0f}", "{:.3f}", "{:+.3f}")
    means = [figure.mean for figure in line.notifications.values()]
    return ["-" if isnan(mean) else form.format(mean) for form, mean in zip(forms, means, strict=True)]


NOTIFICATION_HEADS = ("notified machine-day", "right", "onsets announced", "lead (min)", "cold AP", "cold skill")
NOTIFICATION_CAPTION = (
    "Notifications at 60 % and above, per machine and day, and the share that was right; the share of onsets (an "
    "alarm after 8 h without it) that was announced, and the median lead. Cold codes were not seen for 8 h."
)
_CAPTION = (
    "Mean over machines of macro F1, codes without a positive in a machine's exam left out; in brackets the "
    "average forgetting F_T. Precision is average precision. Brier skill is over the machine's own base rate "
    "so far. Groups are by how often a code comes. "
)
_SPREAD = "± is the spread between seeds."
_NO_SPREAD = "A wider screen, rows.json and report.html show the spread between seeds too."


def json_rows(rows: Sequence[ResultRow], *, preset: str) -> dict[str, list[dict[str, Any]]]:
    """Return the table for programs: means, and beside them the spreads between seeds."""
    return {"rows": [_json_row(line, preset) for line in rows]}


def _json_row(line: ResultRow, preset: str) -> dict[str, Any]:
    return {
        "name": line.name,
        "preset": preset,
        "seeds": line.seeds,
        "macro_f1": {group: _mean(line.macro_f1[group]) for group in GROUPS},
        "macro_f1_all_labels": _mean(line.macro_f1_all_labels),
        "forgetting": _mean(line.forgetting.get("total")),
        "forgetting_by_group": {group: _mean(line.forgetting.get(group)) for group in GROUPS},
        "average_precision": _mean(line.average_precision),
        "average_precision_forgetting": _mean(line.forgetting_of_precision),
        "brier_skill": _mean(line.brier_skill),
        "calibration_error": _mean(line.calibration_error),
        **{name: _mean(figure) for name, figure in line.notifications.items()},
        "memory_seconds": _mean(line.memory_seconds),
        "spread": {
            "macro_f1": {group: _spread(line.macro_f1[group]) for group in GROUPS},
            "forgetting": _spread(line.forgetting.get("total")),
            "average_precision": _spread(line.average_precision),
            "brier_skill": _spread(line.brier_skill),
        },
    }


def _pair(score: Figure, lost: Figure | None, spread: bool) -> str:  # noqa: FBT001
    shown = _shown(score, "", spread)
    return shown if lost is None else f"{shown}\n({lost.mean:.3f})"


def _shown(figure: Figure, sign: str, spread: bool) -> str:  # noqa: FBT001
    shown = f"{figure.mean:{sign}.3f}"
    return f"{shown} ±{figure.spread:.3f}" if spread and figure.spread else shown


def _mean(figure: Figure | None) -> float | None:
    return None if figure is None or isnan(figure.mean) else round(figure.mean, 6)


def _spread(figure: Figure | None) -> float | None:
    return None if figure is None or isnan(figure.spread) else round(figure.spread, 6)
