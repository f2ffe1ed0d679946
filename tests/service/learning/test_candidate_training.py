"""Learning, as the process that trains does it: from stored events to a candidate that the gate has judged."""

import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from sqlalchemy import delete

from edge_agent.simulator.catalogue import catalogue_csv
from edge_agent.simulator.log_file import write_log
from forecasting.forecaster import ObservedSeries
from service.app.configuration import sqlite_url
from service.app.service import Service
from service.app.stores import Stores
from service.database.engine import Database
from service.database.tables import catalogue
from service.database.weight_files import WeightsFolder
from service.errors import InputRejected, TrainingFailed
from service.ingest.build import time_policy
from service.learning import training_job
from service.learning.candidate import MAX_BYTES, Candidate
from service.learning.gate import GateThresholds
from service.learning.history_file import ImportFile
from service.learning.history_import import load_history
from service.learning.models import Progress
from service.learning.row_codec import samples_from_row
from service.learning.training_job import run_training_job
from service.learning.training_process import RESULT_FILE
from service.machines.catalogue import CatalogueEntry, parse_catalogue
from service.settings import Settings
from tests.service.conftest import NOW, enrolled, raise_alarms
from wire.enums import JobState, MachineState
from wire.identity import MachineId

ZERO, ONE, TWO = (MachineId("padova", f"filler-{index}") for index in range(3))
LEASE = timedelta(minutes=1)


@pytest.fixture
def small(settings: Settings) -> Settings:
    """Settings under which a few weeks are enough."""
    return settings.model_copy(update={"min_training_windows": 100, "memory_windows": 200})


@pytest.fixture
def fleet(small: Settings, stores: Stores, tmp_path: Path) -> list[MachineId]:
    """Three machines with weeks of simulated history."""
    log = tmp_path / "history.csv"
    write_log(log, machines=3, days=25, end=NOW, seed=19)
    stores.catalogue.merge(parse_catalogue(catalogue_csv()))
    for index, machine in enumerate((ZERO, ONE, TWO)):
        known = enrolled(stores.enrolments, machine)
        load_history(
            known,
            ImportFile(log, serial=str(index)),
            recorder=stores.events,
            now=NOW,
            policy=time_policy(small),
        )
    return [ZERO, ONE, TWO]


Learn = Callable[..., Candidate]


def train(
    settings: Settings,
    machine: MachineId,
    folder: Path,
    on_progress: Callable[[Progress], None] = lambda _: None,
) -> None:
    """Run a training job as the training process does."""
    url = settings.database_url or sqlite_url(settings.data_dir)
    with closing(Database(url, read_only=True)) as database:
        run_training_job(
            settings,
            database,
            machine=machine,
            now=NOW,
            folder=folder,
            on_progress=on_progress,
        )


@pytest.fixture
def learn(small: Settings, tmp_path: Path) -> Learn:
    """Learn a machine as the process that trains does, and read what it leaves."""

    def learn_one(
        machine: MachineId, settings: Settings = small, told: Callable[[Progress], None] = lambda _: None
    ) -> Candidate:
        train(settings, machine, tmp_path, told)
        return Candidate.read(tmp_path / RESULT_FILE)

    return learn_one


def commit(stores: Stores, candidate: Candidate, *, at: datetime = NOW) -> int:
    for job in stores.jobs.collecting():
        if str(job.machine) == candidate.machine:
            stores.jobs.queue(job)
    claimed = stores.jobs.claim("test", now=NOW, lease=LEASE)
    assert claimed
    assert str(claimed.machine) == candidate.machine
    return stores.updates.commit(claimed, candidate, now=NOW, plant_now=at)


@pytest.mark.usefixtures("fleet")
def test_two_machines_are_learned_one_on_top_of_the_other_and_served_as_they_were_trained(
    small: Settings, stores: Stores, learn: Learn
) -> None:
    first = learn(ZERO)
    assert (first.parent, list(first.results), first.before) == (None, [str(ZERO)], None)
    commit(stores, first)
    second = learn(ONE)
    assert second.parent == 1
    assert set(second.results) == {str(ZERO), str(ONE)}
    assert second.before is not None
    memory = second.report["memory"]["by_machine"]
    assert sum(task["replayed"] + task["held_out"] for task in memory.values()) == small.memory_windows
    assert abs(memory[str(ZERO)]["replayed"] - memory[str(ONE)]["replayed"]) <= 1
    balance = second.report["memory"]
    assert balance["kl_to_uniform"] < balance["kl_offered"], "what is kept is more balanced than what was offered"
    kept, offered = balance["by_code"], balance["offered_by_code"]
    assert all(offered[code] >= kept[code] for code in kept)
    assert set(second.report["seconds"]) == {"dataset", "training", "memory", "exams", "weights"}
    commit(stores, second)
    # What REST says is what the exam's arithmetic says of the same windows.
    service = Service(small, stores)
    champion = stores.versions.champion()
    assert champion
    model = stores.versions.load(champion)
    machine = stores.machines.get(ONE)
    exam = stores.exams.get(ONE)
    assert exam
    place = int(np.argmax(exam.windows.counts.sum(axis=1)))
    at = datetime.fromtimestamp(int(exam.windows.at[place]) / 1e6, tz=NOW.tzinfo)
    made = service.forecasts.service.forecast_at(ONE, at)
    since = stores.events.first_at(machine)
    assert since
    record = ObservedSeries(stores.events.series(machine, at - model.lookback, at), since)
    said = dict(zip(model.vocabulary.targets, model.probabilities([record], at)[0].tolist(), strict=True))
    answers = stores.exams.results_by_version(ONE)[2]
    examined = dict(zip(answers.targets, answers.probabilities[place].tolist(), strict=True))
    for alarm in made.alarms:
        assert alarm.probability == pytest.approx(said[alarm.code], abs=1e-4)
        assert alarm.within
        assert list(alarm.within) == ["2h", "8h", "24h"]
        assert alarm.within["2h"] <= alarm.within["8h"] <= alarm.within["24h"]
        assert alarm.within["8h"] == pytest.approx(alarm.probability, abs=1e-4)
        assert alarm.probability == pytest.approx(examined[alarm.code], abs=2e-3), "exams have half precision"
    now = service.forecasts.service.forecast_now(stores.machines.all(), NOW)
    assert [one.forecast.learned for one in now] == [True, True, False], "the third is served by the fleet's model"


@pytest.mark.usefixtures("fleet")
def test_the_same_champion_and_history_give_the_same_bits(learn: Learn) -> None:
    assert learn(ZERO).weights == learn(ZERO).weights


@pytest.mark.usefixtures("fleet")
def test_the_limits_of_codes_change_not_a_bit_of_an_ordinary_machine(
    small: Settings, stores: Stores, learn: Learn
) -> None:
    """Not even where the catalogue names nothing but targets."""
    with stores.database.write() as connection:
        connection.execute(delete(catalogue).where(catalogue.c.target.is_(False)))
    limited = learn(ZERO)
    endless = {"max_codes_per_machine": 10**9, "max_codes_per_model": 10**9, "min_code_days": 1}
    free = learn(ZERO, small.model_copy(update=endless))
    assert limited.report["codes"]["inputs"] > limited.report["codes"]["targets"], "there are codes beside targets"
    assert limited.weights == free.weights
    assert (limited.task, limited.samples, limited.holdout) == (free.task, free.samples, free.holdout)
    assert limited.notes == ()


@pytest.mark.usefixtures("fleet")
def test_a_machine_that_raises_garbage_codes_is_learned_without_most_of_them(
    small: Settings, stores: Stores, learn: Learn
) -> None:
    limits = {"max_codes_per_machine": 30, "max_codes_per_model": 40}
    limited = small.model_copy(update=limits)
    commit(stores, learn(ZERO, limited))
    ordinary = learn(ONE, limited)
    garbage = [(NOW - timedelta(minutes=40 * number), 10**6 + number % 300) for number in range(900)]
    raise_alarms(stores, stores.machines.get(ONE), *garbage)
    candidate = learn(ONE, limited)
    commit(stores, candidate)
    assert candidate.report["codes"]["inputs"] == ordinary.report["codes"]["inputs"] + 30
    assert candidate.report["left_out"] == {str(ONE): 270}
    assert str(candidate.notes[0]).startswith(f"270 codes of {ONE} were not learned and count as unknown")
    assert str(candidate.notes[0]) in str(stores.jobs.newest(machine=ONE)[0].message)
    windows = samples_from_row(SimpleNamespace(**candidate.samples))
    assert len(windows.codes) <= ordinary.report["codes"]["inputs"] + 30 + 1
    assert candidate.passed
    assert f"{ONE} (270)" in Service(limited, stores).health(lambda _: True).warnings["codes"]
    more = [(NOW - timedelta(minutes=40 * number), 10**7 + number % 100) for number in range(900)]
    without = learn(TWO, limited).report["codes"]["inputs"]
    raise_alarms(stores, stores.machines.get(TWO), *more)
    third = learn(TWO, limited)
    assert third.report["codes"]["inputs"] == without + 10, "the model has no more room"
    assert third.report["left_out"] == {str(ONE): 270, str(TWO): 90}


def test_what_is_too_large_to_be_stored_is_refused_before_it_is_read(tmp_path: Path) -> None:
    with (tmp_path / RESULT_FILE).open("wb") as file:
        file.truncate(MAX_BYTES + 1)
    with pytest.raises(TrainingFailed, match=r"512 MB are allowed\. Lower ALARMCAST_MAX_CODES_PER_MACHINE"):
        Candidate.read(tmp_path / RESULT_FILE)


@pytest.mark.usefixtures("fleet")
def test_where_the_gate_finds_the_way_too_far_it_is_halved_until_hardly_any_is_left(
    stores: Stores, small: Settings, learn: Learn, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit(stores, learn(ZERO))
    champion = stores.versions.champion()
    assert champion
    weights = WeightsFolder(small.data_dir / "weights")
    before = weights.load(champion.weights).network.layers[1].bias
    halved, moved = {}, {}
    # One gate lets everything pass, the other asks for more than anybody can give.
    for passes, allowed in ((True, 1.0), (False, -1.0)):
        monkeypatch.setattr(
            training_job, "GateThresholds", partial(GateThresholds, mean_loss=allowed, gross_loss=allowed)
        )
        candidate = learn(ONE)
        assert candidate.passed is passes
        halved[passes] = candidate.report["halved"]
        moved[passes] = weights.load(candidate.weights).network.layers[1].bias - before
    assert halved == {True: 0, False: 3}
    assert np.any(moved[True])
    assert np.allclose(moved[False], moved[True] / 8, atol=1e-6)


@pytest.mark.usefixtures("fleet")
def test_progress_is_told_stage_by_stage(small: Settings, tmp_path: Path) -> None:
    told: list[Progress] = []
    train(small, ZERO, tmp_path, told.append)
    stages = list(dict.fromkeys(progress.stage for progress in told))
    assert stages == ["dataset", "training", "memory", "gate"]
    epochs = [progress for progress in told if progress.stage == "training"]
    assert [progress.done for progress in epochs] == list(range(1, len(epochs) + 1))
    assert all(progress.loss is not None and progress.seconds_left is not None for progress in epochs)


@pytest.mark.usefixtures("fleet")
def test_a_code_that_comes_later_extends_the_vocabulary_without_moving_the_old(
    stores: Stores, learn: Learn
) -> None:
    commit(stores, learn(ZERO))
    before = stores.versions.load(stores.versions.get(1))
    new = 77_777
    machine = stores.machines.get(ONE)
    raise_alarms(stores, machine, *((NOW - timedelta(hours=7 * n), new) for n in range(1, 70)))
    stores.catalogue.merge([CatalogueEntry(new, "Never seen before", "high", target=True)])
    commit(stores, learn(ONE))
    after = stores.versions.load(stores.versions.get(2))
    assert after.vocabulary.targets == (*before.vocabulary.targets, new)
    assert after.vocabulary.inputs[: len(before.vocabulary.inputs)] == before.vocabulary.inputs
    assert new in after.vocabulary.inputs
    assert any(row["code"] == new and row["positives"] > 0 for row in stores.exams.by_code(2)[str(ONE)])


@pytest.mark.usefixtures("fleet")
def test_a_retired_machine_is_neither_replayed_nor_examined(stores: Stores, learn: Learn) -> None:
    commit(stores, learn(ZERO))
    commit(stores, learn(ONE))
    stores.enrolments.retire(stores.machines.get(ZERO), who="test", at=NOW, plant_at=NOW, reason=None)
    third = learn(TWO)
    assert set(third.results) == {str(ONE), str(TWO)}
    shares = third.report["memory"]["by_machine"]
    assert set(shares) == {str(ONE), str(TWO)}


@pytest.mark.usefixtures("fleet")
def test_what_cannot_be_learned_is_refused_in_a_sentence(
    small: Settings, stores: Stores, learn: Learn, tmp_path: Path
) -> None:
    much = small.model_copy(update={"min_training_windows": 100_000})
    with pytest.raises(InputRejected, match="windows to learn from and needs 100000"):
        train(much, ZERO, tmp_path)
    commit(stores, learn(ZERO))
    other = small.model_copy(update={"horizon_minutes": 60})
    with pytest.raises(TrainingFailed, match="Put the settings back"):
        train(other, ONE, tmp_path)


def test_without_a_target_code_there_is_nothing_to_learn(small: Settings, stores: Stores, tmp_path: Path) -> None:
    machine = enrolled(stores.enrolments, ZERO)
    raise_alarms(stores, machine, *((NOW - timedelta(hours=n), 5) for n in range(600)))
    with pytest.raises(InputRejected, match="names no target code"):
        train(small, ZERO, tmp_path)


@pytest.mark.parametrize(
    "codes",
    [
        pytest.param([5], id="one code, not forecast"),
        pytest.param([139], id="one code, forecast, always"),
        pytest.param([139, 5], id="two codes, as regular as a clock"),
    ],
)
def test_a_log_of_the_same_over_and_over_has_a_defined_end(
    small: Settings, stores: Stores, tmp_path: Path, codes: list[int]
) -> None:
    stores.catalogue.merge([CatalogueEntry(139, "Film torn", "high", target=True)])
    machine = enrolled(stores.enrolments, ZERO)
    raise_alarms(stores, machine, *((NOW - timedelta(hours=n), codes[n % len(codes)]) for n in range(600)))
    train(small, ZERO, tmp_path)
    candidate = Candidate.read(tmp_path / RESULT_FILE)
    commit(stores, candidate)
    (job,) = stores.jobs.newest()
    served = stores.machines.get(ZERO)
    assert (job.state, served.state) in (
        (JobState.PROMOTED, MachineState.LIVE),
        (JobState.REJECTED, MachineState.FAILED),
    )
    if job.state is JobState.REJECTED:
        assert job.message
        assert "base rate" in str(job.message)


def test_the_processes_that_serve_never_load_torch() -> None:
    program = (
        "import sys, service.cli, service.app.service, service.demo;"
        "sys.exit(any(name.split('.')[0] in ('torch', 'numba') for name in sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
