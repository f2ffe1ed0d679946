"""Run one training job in the training process: the only one that loads torch; it never writes to the database."""

import time
from dataclasses import replace
from datetime import datetime
from pathlib import Path

import numpy as np

from forecasting.history import HistorySpec
from forecasting.network import Network
from service import __version__
from service.database.engine import Database
from service.database.weight_files import WeightsFolder
from service.forecasts.version_store import VersionStore
from service.learning import model_comparison, ocdm
from service.learning.candidate_evaluation import CandidateEvaluation
from service.learning.candidate_training import CandidateTrainer, ProgressCallback
from service.learning.evaluation_store import HoldoutStore
from service.learning.gate import GateThresholds
from service.learning.memory_store import MemoryStore
from service.learning.models import Progress
from service.learning.presets import PRESETS
from service.learning.torch_trainer import EpochProgress, train
from service.learning.training_data import DatasetBuilder, TrainingDataPolicy, window_spec
from service.learning.training_process import RESULT_FILE
from service.learning.windows import Samples
from service.machines.catalogue_store import CatalogueStore
from service.machines.event_store import EventStore
from service.machines.store import MachineStore
from service.settings import Settings
from wire.identity import MachineId


def warm_up() -> None:
    """Run once, on almost no data, what is slow the first time."""
    labels = np.eye(2, dtype=np.bool_)
    spec = HistorySpec()
    scores = labels.astype(np.float32)
    history = np.ones((2, 2, spec.width + spec.machine_width), dtype=np.float16)
    ocdm.keep(labels, 1)
    model_comparison.resampled_average_precision(labels, scores, np.arange(2), np.ones((2, 2)))
    training = replace(PRESETS["product"].training, epochs=1, first_steps=0)
    train(None, Samples(scores, labels, history), spec=training, rng=np.random.default_rng(0))


def run_training_job(
    settings: Settings,
    database: Database,
    *,
    machine: MachineId,
    now: datetime,
    folder: Path,
    on_progress: ProgressCallback,
) -> None:
    """Train a machine and write the candidate to a file in ``folder``."""
    preset = PRESETS["product"]

    def fit(
        start: Network | None,
        new: Samples,
        replay: Samples | None,
        *,
        rng: np.random.Generator,
        on_progress: ProgressCallback,
    ) -> Network:
        began = time.monotonic()

        def on_epoch(epoch: EpochProgress) -> None:
            left = (time.monotonic() - began) / epoch.epoch * (epoch.epochs - epoch.epoch)
            on_progress(Progress("training", epoch.epoch, epoch.epochs, round(epoch.loss, 5), round(left, 1)))

        return train(start, new, replay=replay, spec=preset.training, rng=rng, progress=on_epoch)

    weights = WeightsFolder(settings.data_dir / "weights")
    machines, spec = MachineStore(database), window_spec(settings)
    policy = TrainingDataPolicy.from_settings(settings)
    thresholds = GateThresholds(max_forgetting=settings.max_forgetting)
    trainer = CandidateTrainer(
        datasets=DatasetBuilder(machines, EventStore(database), spec, policy),
        catalogue=CatalogueStore(database),
        versions=VersionStore(database, weights),
        memories=MemoryStore(database),
        evaluation=CandidateEvaluation(HoldoutStore(database), thresholds),
        weights=weights,
        config=preset.update_config(
            "bat-ocdm",
            memory=settings.memory_windows,
            per_machine=settings.memory_windows_per_machine,
            spec=spec,
        ),
        code_version=__version__,
    )
    candidate = trainer.run(machines.get(machine), now=now, train=fit, on_progress=on_progress)
    candidate.write(folder / RESULT_FILE)
