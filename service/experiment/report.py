"""The paper's figures for this fleet as one HTML file that needs nothing else."""

from collections.abc import Sequence
from html import escape
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from service.experiment.charts import bars, curve, heat, lines
from service.experiment.comparison import Comparison
from service.experiment.results import GROUPS, Figure, ResultRow, Run
from service.experiment.table import NOTIFICATION_CAPTION, NOTIFICATION_HEADS, notification_cells

_STYLE = Path(__file__).with_name("report.css")


def report(comparison: Comparison) -> str:
    """Return the whole page."""
    plan = comparison.plan
    title = f"{plan.preset} preset, M = {plan.size}, {len(comparison.machines)} machines"
    learned = {name: runs for name, runs in comparison.runs.items() if runs[0].learned is not None}
    sections = [
        f"<h1>Which memory suits this fleet?</h1><p>{escape(title)}, {plan.seeds} seeds.</p>",
        _scores(comparison.rows),
        _section(
            "Notifications",
            NOTIFICATION_CAPTION,
            _table(
                ["forecaster", *NOTIFICATION_HEADS], [[r.name, *notification_cells(r)] for r in comparison.rows]
            ),
        ),
        _data(comparison),
        _memories(comparison, learned),
        _times(comparison, learned),
        _forgetting(comparison, learned),
        _reliability(learned),
        _codes(comparison, learned),
    ]
    return (
        '<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">'
        f"<title>Alarmcast experiment: {escape(title)}</title><style>{_STYLE.read_text()}</style>"
        f"<body><main>{''.join(sections)}</main></body></html>"
    )


def _scores(rows: Sequence[ResultRow]) -> str:
    head = ["forecaster", *(f"F1 {group}" for group in GROUPS), "F_T", "precision", "Brier skill", "memory (s)"]
    body = [
        [
            line.name,
            *(_shown(line.macro_f1[group]) for group in GROUPS),
            _shown(line.forgetting.get("total")),
            _shown(line.average_precision),
            _shown(line.brier_skill),
            _shown(line.memory_seconds),
        ]
        for line in rows
    ]
    return _section(
        "Scores",
        "Means over machines and seeds, codes without a positive in an exam left out. A strategy that does not "
        "beat the first rows, which learn nothing, is of no use.",
        _table(head, body),
    )


def _data(comparison: Comparison) -> str:
    windows = np.array(comparison.sizes)
    rates = windows @ comparison.rates / windows.sum()
    return _section(
        "The data",
        "How often each code comes within a horizon, and how many windows each machine has to learn from.",
        _figure("codes", bars([str(code) for code in comparison.codes], rates.tolist(), title="share of windows")),
        _figure(
            "machines",
            bars(comparison.machines, windows.tolist(), title="training windows", line=float(windows.mean())),
        ),
    )


def _memories(comparison: Comparison, learned: dict[str, Sequence[Run]]) -> str:
    figures = []
    for name, (run, *_) in learned.items():
        if run.learned is None or not sum(run.learned.sizes):
            continue
        kept = run.learned.kept.sum(axis=0)
        divergence = f"{name}, KL {run.learned.divergence:.4f}"
        figures += [
            _figure(
                f"{divergence}: codes",
                bars([str(code) for code in comparison.codes], (kept / kept.sum()).tolist(), title=divergence),
            ),
            _figure(
                f"{name}: machines",
                bars(
                    comparison.machines,
                    run.learned.sizes,
                    title=f"{name}, windows by machine",
                    line=float(np.mean(run.learned.sizes)),
                ),
            ),
        ]
    return _section(
        "What each strategy remembers",
        "After the last machine, first seed: the labels' shares with their divergence from equal shares, and "
        "how many windows of each machine are left to replay.",
        *figures,
    )


def _times(comparison: Comparison, learned: dict[str, Sequence[Run]]) -> str:
    seconds = {
        name: np.mean([run.learned.memory_seconds for run in runs if run.learned], axis=0).tolist()
        for name, runs in learned.items()
    }
    return _section(
        "Time for memory updates",
        "Seconds of choosing what to keep, machine by machine, mean over seeds.",
        _figure("seconds", lines(comparison.machines, seconds, title="seconds for each memory update")),
    )


def _forgetting(comparison: Comparison, learned: dict[str, Sequence[Run]]) -> str:
    figures = [
        _figure(
            name,
            heat(
                comparison.machines,
                comparison.machines,
                _mean([comparison.evaluation.matrix(run.f1) for run in runs]).T.tolist(),
                title=f"{name}: macro F1 of each machine after each update",
            ),
        )
        for name, runs in learned.items()
    ]
    return _section(
        "Forgetting",
        "Macro F1 of each machine (row) after each update (column), mean over seeds: darker is better, and a "
        "row that pales to the right is being forgotten.",
        *figures,
    )


def _reliability(learned: dict[str, Sequence[Run]]) -> str:
    curves = {}
    for name, runs in learned.items():
        said, came, _ = _mean([run.reliability for run in runs])
        curves[name] = list(zip(said.tolist(), came.tolist(), strict=True))
    return _section(
        "Reliability",
        "How often an alarm came (upwards) when this probability was said (to the right). On the dashed line "
        "probabilities can be believed.",
        _figure("all codes and machines", curve(curves, title="reliability")),
    )


def _codes(comparison: Comparison, learned: dict[str, Sequence[Run]]) -> str:
    support, groups = comparison.evaluation.support, comparison.evaluation.groups
    group_of = {place: group for group in GROUPS[1:] for place in np.flatnonzero(groups[group]).tolist()}
    body = []
    for place, code in enumerate(comparison.codes):
        scores = [_of_code(_mean([run.f1[-1] for run in runs]), support, place) for runs in learned.values()]
        body.append([str(code), group_of.get(place, ""), str(int(support[:, place].sum())), *scores])
    return _section(
        "Codes",
        "F1 of each code after the last machine, mean over the machines whose exam holds it.",
        _table(["code", "group", "machines", *learned], body),
    )


def _of_code(values: NDArray[np.float64], support: NDArray[np.bool_], place: int) -> str:
    there = support[:, place]
    return f"{values[there, place].mean():.3f}" if there.any() else "-"


def _mean(tables: Sequence[NDArray[np.float64]]) -> NDArray[np.float64]:
    return np.asarray(np.mean(np.array(tables), axis=0))


def _shown(figure: Figure | None) -> str:
    if figure is None or np.isnan(figure.mean):
        return "-"
    return f"{figure.mean:.3f}" + (f" ± {figure.spread:.3f}" if figure.spread else "")


def _table(head: Sequence[str], body: Sequence[Sequence[str]]) -> str:
    titles = "".join(f"<th>{escape(name)}</th>" for name in head)
    rows = "".join("<tr>" + "".join(f"<td>{escape(entry)}</td>" for entry in line) + "</tr>" for line in body)
    return f"<table><thead><tr>{titles}</tr></thead><tbody>{rows}</tbody></table>"


def _figure(caption: str, picture: str) -> str:
    return f"<figure>{picture}<figcaption>{escape(caption)}</figcaption></figure>"


def _section(title: str, text: str, *parts: str) -> str:
    return (
        f'<section><h2>{escape(title)}</h2><p>{escape(text)}</p><div class="row">{"".join(parts)}</div></section>'
    )
