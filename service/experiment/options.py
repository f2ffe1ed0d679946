"""The options of the experiment."""

from dataclasses import dataclass
from pathlib import Path

from service.learning.strategies import STRATEGIES


@dataclass(frozen=True)
class ExperimentOptions:
    """What is asked for; ``None`` leaves the choice to the preset, or takes all machines."""

    out: Path
    targets: tuple[int, ...]
    windows: Path | None = None
    log: Path | None = None
    machines: tuple[str, ...] | None = None
    strategies: tuple[str, ...] = tuple(STRATEGIES)
    preset: str = "product"
    memory: int | None = None
    epochs: int | None = None
    seeds: int = 3
    min_in: int | None = None
    min_out: int | None = None
