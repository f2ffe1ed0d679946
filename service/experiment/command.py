"""The ``experiment`` command; it loads torch only when it runs."""

import json
from pathlib import Path
from typing import Annotated, Final

import typer
from rich.console import Console

from service.errors import InputRejected
from service.experiment.run_all import ExperimentOptions

_WIDTH: Final = 124  # what the table needs to show spreads; a pipe gets it whole, a narrower screen without


def command(  # noqa: PLR0913, PLR0917 - one parameter for each option
    targets: Annotated[str, typer.Option(help="Codes to forecast, separated by commas.")],
    out: Annotated[Path, typer.Option(help="Where runs, report.html and rows.json go; runs found there count.")],
    windows: Annotated[Path | None, typer.Option(help="ALPI windows, a .npz file.")] = None,
    log: Annotated[
        Path | None, typer.Option(help="Raw alarms: timestamp,alarm,serial as .csv or .csv.gz.")
    ] = None,
    machines: Annotated[
        str | None, typer.Option(help="Serials in the order to learn them; all by default.")
    ] = None,
    strategies: Annotated[str, typer.Option(help="all, or names separated by commas.")] = "all",
    preset: Annotated[str, typer.Option(help="paper or product.")] = "product",
    memory: Annotated[
        int | None, typer.Option(min=1, help="Windows kept in all, the paper's M; the preset's by default.")
    ] = None,
    epochs: Annotated[int | None, typer.Option(min=1, help="Passes over each machine's windows.")] = None,
    seeds: Annotated[int, typer.Option(min=1, help="How often to repeat each strategy.")] = 3,
    min_in: Annotated[int | None, typer.Option(min=0, help="Fewest raw alarms in the evidence.")] = None,
    min_out: Annotated[int | None, typer.Option(min=0, help="Fewest raw alarms in the horizon.")] = None,
    *,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
) -> None:
    """Compare the paper's strategies on a fleet's own logs: table, report and baselines."""
    from service.experiment.run_all import experiment  # noqa: PLC0415
    from service.experiment.table import json_rows, notification_table, table  # noqa: PLC0415

    options = ExperimentOptions(
        out=out,
        targets=_codes(targets),
        windows=windows,
        log=log,
        machines=None if machines is None else _names(machines),
        strategies=ExperimentOptions.strategies if strategies == "all" else _names(strategies),
        preset=preset,
        memory=memory,
        epochs=epochs,
        seeds=seeds,
        min_in=min_in,
        min_out=min_out,
    )
    comparison = experiment(options, screen=Console(stderr=True))
    if as_json:
        typer.echo(json.dumps(json_rows(comparison.rows, preset=preset)))
    else:
        title = f"{preset} preset, M = {comparison.plan.size}, {len(comparison.machines)} machines, {seeds} seeds"
        page = Console()
        page.width = page.width if page.is_terminal else max(page.width, _WIDTH)
        page.print(table(comparison.rows, title=title, spread=page.width >= _WIDTH))
        page.print(notification_table(comparison.rows))


def _names(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(",") if name.strip())


def _codes(text: str) -> tuple[int, ...]:
    names = _names(text)
    if not names or not all(name.isascii() and name.isdigit() for name in names) or len(set(names)) < len(names):
        raise InputRejected(f"{text!r} is not a list of different alarm codes separated by commas.")
    return tuple(int(name) for name in names)
