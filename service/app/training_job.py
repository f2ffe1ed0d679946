"""The process that learns: the only one that loads torch, and it never writes to the database."""

import time
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from pathlib import Path

import numpy as np

from forecasting.history import HistorySpec
from forecasting.network import Network
from service import __version__
from service.app.configuration import curriculum, sqlite_url, window_spec
from service.database.engine import Database
from service.database.weight_files import WeightsFolder
from service.forecasts.version_store import VersionStore
from service.learning.candidate_file import write
from service.learning.evaluation_store import HoldoutStore
from service.learning.gate import GateThresholds
from service.learning.job import Progress
from service.learning.memory_store import MemoryStore
from service.learning.samples import Samples
from service.learning.training_data import DatasetBuilder
from service.learning.training_process import RESULT_FILE
from service.machines.catalogue_store import CatalogueStore
from service.machines.event_store import EventStore
from service.machines.store import MachineStore
from service.settings import Settings
from wire.fast_start import gc_disabled
from wire.identity import MachineId


def warm_up() -> None:
    """Load all that learning takes and go once through what else is slow the first time, on nothing much."""
    with gc_disabled():
        from service.learning import candidate_training as learn  # noqa: F401, PLC0415
        from service.learning import ocdm, resampling  # noqa: PLC0415
        from service.learning.presets import PRESETS  # noqa: PLC0415
        from service.learning.torch_trainer import train  # noqa: PLC0415

        labels = np.eye(2, dtype=np.bool_)
        scores, history = labels.astype(np.float32), np.ones((2, 2, 1), dtype=np.float32)
        ocdm.keep(labels, 1)
        resampling.average_precision(labels, scores, np.arange(2), np.ones((2, 2)))
        spec = replace(PRESETS["product"].training, epochs=1, first_steps=0)
        train(None, Samples(scores, labels, history), spec=spec, rng=np.random.default_rng(0))


def run_training_job(
    settings: Settings, *, machine: MachineId, now: datetime, folder: Path, told: Callable[[Progress], None]
) -> None:
    """Learn a machine in this process, which loads torch and never writes to the database; leave the result."""
    with gc_disabled():
        from service.learning.candidate_evaluation import CandidateEvaluation  # noqa: PLC0415 - the serving process never comes here
        from service.learning.candidate_training import CandidateTrainer  # noqa: PLC0415
        from service.learning.presets import PRESETS  # noqa: PLC0415
        from service.learning.torch_trainer import Progress as Epoch  # noqa: PLC0415
        from service.learning.torch_trainer import train  # noqa: PLC0415

    preset = PRESETS["product"]

    def fit(
        start: Network | None,
        new: Samples,
        replay: Samples | None,
        *,
        rng: np.random.Generator,
        told: Callable[[Progress], None],
    ) -> Network:
        began = time.monotonic()

        def tell(epoch: Epoch) -> None:
            left = (time.monotonic() - began) / epoch.epoch * (epoch.epochs - epoch.epoch)
            told(Progress("training", epoch.epoch, epoch.epochs, round(epoch.loss, 5), round(left, 1)))

        return train(start, new, replay=replay, spec=preset.training, rng=rng, progress=tell)

    database = Database(settings.database_url or sqlite_url(settings.data_dir), read_only=True)
    weights = WeightsFolder(settings.data_dir / "weights")
    try:
        machines, events = MachineStore(database), EventStore(database)
        learning = CandidateTrainer(
            school=DatasetBuilder(machines, events, window_spec(settings), curriculum(settings)),
            catalogue=CatalogueStore(database),
            versions=VersionStore(database, weights),
            memories=MemoryStore(database),
            examination=CandidateEvaluation(
                HoldoutStore(database), GateThresholds(max_forgetting=settings.max_forgetting)
            ),
            weights=weights,
            recipe=preset.update_config("bat-ocdm", memory=settings.memory_windows),
            history=HistorySpec(),
            code_version=__version__,
        )
        candidate = learning.run(machines.get(machine), now=now, train=fit, told=told)
    finally:
        database.close()
    write(candidate, folder / RESULT_FILE)
