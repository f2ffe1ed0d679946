"""Learn arrow, memory: every strategy by its name, as the paper runs it."""

from collections.abc import Mapping
from typing import Final

from service.learning.strategies.bat_ocdm import BatOcdm
from service.learning.strategies.bounds import Cumulative, Finetune
from service.learning.strategies.ocdm import Ocdm
from service.learning.strategies.random import Reservoir, TaskRandom
from service.learning.strategies.strategy import Strategy

STRATEGIES: Final[Mapping[str, Strategy]] = {
    "finetune": Finetune(),
    "cumulative": Cumulative(),
    "task-random": TaskRandom(),
    "reservoir": Reservoir(),
    "ocdm": Ocdm(),
    "dataset-ocdm": Ocdm(batch=None),
    "bat-ocdm": BatOcdm(),
}
