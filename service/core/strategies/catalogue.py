"""Learn arrow, memory: every strategy by its name, as the paper runs it."""

from collections.abc import Mapping
from typing import Final

from service.core.strategies.bat_ocdm import BatOcdm
from service.core.strategies.bounds import Cumulative, Finetune
from service.core.strategies.ocdm import Ocdm
from service.core.strategies.random import Reservoir, TaskRandom
from service.core.strategies.strategy import Strategy

STRATEGIES: Final[Mapping[str, Strategy]] = {
    "finetune": Finetune(),
    "cumulative": Cumulative(),
    "task-random": TaskRandom(),
    "reservoir": Reservoir(),
    "ocdm": Ocdm(),
    "dataset-ocdm": Ocdm(batch=None),
    "bat-ocdm": BatOcdm(),
}
