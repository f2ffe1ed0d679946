"""The first model: learned from stored events, calibrated, examined, promoted; served as it was trained."""

import subprocess
import sys
from datetime import UTC, timedelta
from pathlib import Path

import numpy as np
import pytest

from edge_agent.simulator.catalogue import catalogue_csv
from edge_agent.simulator.log_file import write_log
from forecasting.window import evidence
from service.bootstrap import Service, Stores, learn_first_model, open_stores, time_policy
from service.core.catalogue import parse_catalogue
from service.errors import InputRejected
from service.flows.load_history import load_history
from service.settings import Settings
from tests.service.conftest import NOW
from wire.identity import MachineId


def load(settings: Settings, stores: Stores, tmp_path: Path, *, days: float) -> None:
    log = tmp_path / "history.csv"
    write_log(log, machines=2, days=days, end=NOW, seed=19)
    stores.catalogue.merge(parse_catalogue(catalogue_csv()))
    for index in range(2):
        machine = MachineId("padova", f"filler-{index}")
        stores.machines.add(machine, name=str(machine), time_zone="UTC", at=NOW)
        known = stores.machines.get(machine)
        policy = time_policy(settings)
        loaded = load_history(
            known, log, serial=str(index), zone=UTC, recorder=stores.events, now=NOW, policy=policy
        )
        assert loaded.stored > 100
        again = load_history(
            known, log, serial=str(index), zone=UTC, recorder=stores.events, now=NOW, policy=policy
        )
        assert (again.stored, again.duplicates) == (0, loaded.stored), "loading twice changes nothing"


def test_a_first_model_is_learned_from_stored_history_and_serves(settings: Settings, tmp_path: Path) -> None:
    with open_stores(settings) as stores:
        load(settings, stores, tmp_path, days=30)
    epochs: list[int] = []
    version = learn_first_model(settings, epochs=2, seed=3, progress=epochs.append)
    assert epochs == [1, 2]
    assert version.name == "v1"
    assert set(version.report["exams"]) == {"padova/filler-0", "padova/filler-1"}
    with open_stores(settings) as stores:
        service = Service(settings, stores)
        made = service.desk.now(stores.machines.all(), NOW)
        assert len(made[0].forecast.alarms) == 15
        model = stores.versions.load(version)
        machine = stores.machines.all()[0]
        seen = evidence(stores.events.series(machine, NOW - timedelta(days=3), NOW), NOW, model.spec)
        assert np.allclose(model.probabilities([seen])[0], made[0].stored.probabilities)
    again = learn_first_model(settings, epochs=2, seed=3, progress=epochs.append)
    assert again.weights == version.weights, "the same history and seed give the same weights, to the bit"


def test_too_little_history_is_refused_with_what_to_do(settings: Settings, tmp_path: Path) -> None:
    with open_stores(settings) as stores:
        load(settings, stores, tmp_path, days=10)
    with pytest.raises(InputRejected, match="No machine has 336 hourly windows"):
        learn_first_model(settings, epochs=1, seed=0, progress=lambda _epoch: None)


def test_a_catalogue_without_targets_is_refused_with_what_to_do(settings: Settings) -> None:
    with pytest.raises(InputRejected, match="names no target code"):
        learn_first_model(settings, epochs=1, seed=0, progress=lambda _epoch: None)


def test_a_row_that_is_no_alarm_is_quarantined_and_the_rest_is_loaded(
    settings: Settings, stores: Stores, tmp_path: Path
) -> None:
    machine = MachineId("padova", "filler-1")
    stores.machines.add(machine, name="x", time_zone="UTC", at=NOW)
    log = tmp_path / "log.csv"
    log.write_text("timestamp,alarm,serial\n2026-11-10 08:00:00,5,1\nrubbish\n1990-01-01 00:00:00,5,1\n")
    loaded = load_history(
        stores.machines.get(machine), log, serial=None, zone=UTC, recorder=stores.events, now=NOW,
        policy=time_policy(settings),
    )  # fmt: skip
    assert (loaded.stored, loaded.rejected) == (1, 2)


def test_the_processes_that_serve_never_load_torch() -> None:
    program = (
        "import sys, service.cli, service.bootstrap, service.demo;"
        "sys.exit(any(name.split('.')[0] == 'torch' for name in sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
