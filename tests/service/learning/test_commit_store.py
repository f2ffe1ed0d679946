"""The one transaction that ends a learning, on SQLite and on PostgreSQL alike: everything or nothing."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest
from sqlalchemy import func, select

from forecasting.vocabulary import Columns
from service.auth.audit_store import AuditStore
from service.database.engine import Database
from service.database.tables import evaluation_results, holdout_sets, model_versions, samples, tasks
from service.database.weight_files import WeightsFolder
from service.errors import ChampionChanged, Conflict, LeaseLost, TrainingFailed
from service.forecasts.version_store import VersionStore
from service.http.message import MACHINE, Message, Sentence
from service.learning.candidate import Candidate, RetainedSamples
from service.learning.commit_store import UpdateStore
from service.learning.enrolment_store import EnrolmentStore
from service.learning.evaluation import EvaluationResult, HoldoutSet
from service.learning.evaluation_store import HoldoutStore
from service.learning.job_store import JobStore
from service.learning.memory import TaskMemory
from service.learning.memory_store import MemoryStore
from service.learning.models import Job
from service.learning.row_codec import result_row
from service.learning.windows import WindowSet
from service.machines.store import MachineStore
from tests.service.conftest import enrolled, lapse, small_model
from wire.enums import JobKind, JobState, MachineState
from wire.identity import MachineId

AT = datetime(2026, 11, 16, tzinfo=UTC)
LEASE = timedelta(seconds=30)
TARGETS = (139, 26)
FORGOT = Sentence(f"{MACHINE}: it forgot.", "4711/17")
TABLES = (model_versions, tasks, samples, holdout_sets, evaluation_results)


def windows(seed: int, count: int = 12) -> WindowSet:
    """Windows of a machine that knows five codes and tracks four, some of them without a trace."""
    rng = np.random.default_rng(seed)
    codes = np.array([5, 26, 98, 137, 139])
    figures = rng.random((count, 4, 3)).astype(np.float32)
    figures[rng.random((count, 4)) < 0.4] = 0
    return WindowSet(
        at=np.arange(count) * 3_600_000_000 + seed,
        codes=codes,
        counts=rng.integers(0, 3, (count, 5)).astype(np.int32),
        outcomes=rng.random((count, 5)) < 0.3,
        tracked=codes[:4],
        history=figures,
        context=rng.random((count, 2)).astype(np.float32),
    )


def marked(seed: int, count: int = 12) -> EvaluationResult:
    said = np.random.default_rng(seed).random((count, 2)).astype(np.float32)
    return EvaluationResult(TARGETS, said, 0.5 + seed / 100, 0.1, None, [{"code": 139, "f1": 0.5}])


class Bench:
    """A store with a job at hand, and what it takes to make candidates."""

    def __init__(self, database: Database, folder: Path) -> None:
        self.database = database
        self.versions = VersionStore(database, WeightsFolder(folder / "weights"))
        self.jobs, self.updates = JobStore(database), UpdateStore(database, self.versions.weights)
        self.machines = MachineStore(database)

    def job(self, machine: MachineId) -> Job:
        if self.machines.find(machine) is None:
            enrolled(EnrolmentStore(self.database), machine)
        found = self.machines.get(machine)
        if found.state is MachineState.LIVE:
            self.jobs.open(found, JobKind.REFRESH, JobState.QUEUED, at=AT)
        for job in self.jobs.collecting():
            self.jobs.queue(job)
        claimed = self.jobs.claim("me", now=AT, lease=LEASE)
        assert claimed
        return claimed

    def candidate(self, machine: MachineId, *, seed: int, passed: bool = True, keep: int = 6) -> Candidate:
        champion = self.versions.champion()
        memory = MemoryStore(self.database).get(champion.id).tasks if champion else {}
        old = {name: task for name, task in memory.items() if name != str(machine)}
        whole = windows(seed)
        return Candidate.pack(
            machine=str(machine),
            parent=champion.id if champion else None,
            weights=self.versions.weights.save(small_model(seed=seed)),
            targets=TARGETS,
            retained={
                name: RetainedSamples(np.arange(min(keep, len(task.windows))), np.arange(len(task.held_out)))
                for name, task in old.items()
            },
            task=TaskMemory(whole.take(range(8)), whole.take(range(8, 12)), 12, {139: 4, 26: 3}),
            holdout=HoldoutSet(windows(seed + 1000), {139: 0.25}),
            results={name: marked(seed) for name in (*old, str(machine))},
            before=marked(seed + 1) if champion else None,
            passed=passed,
            reasons=() if passed else (FORGOT,),
            report={"summary": f"seed {seed}"},
        )

    def learn(self, machine: MachineId, *, seed: int, passed: bool = True) -> int:
        job = self.job(machine)
        return self.updates.commit(
            job,
            self.candidate(machine, seed=seed, passed=passed),
            now=AT,
            plant_now=AT + timedelta(hours=seed),
        )

    def counts(self) -> dict[str, int]:
        with self.database.read() as connection:
            return {
                table.name: connection.execute(select(func.count()).select_from(table)).scalar_one()
                for table in TABLES
            }


@pytest.fixture
def bench(database: Database, tmp_path: Path) -> Bench:
    return Bench(database, tmp_path)


A, B, C = (MachineId("padova", name) for name in ("a", "b", "c"))


def same(first: WindowSet, second: WindowSet) -> None:
    """Both hold the same of every code, whichever columns they have."""
    columns = Columns((5, 26, 98, 137, 139))
    assert np.array_equal(first.at, second.at)
    assert np.allclose(first.inputs(columns), second.inputs(columns))
    assert np.array_equal(first.labels(columns), second.labels(columns))
    assert np.array_equal(first.code_recency(columns), second.code_recency(columns))


def test_a_job_ends_in_plant_time_when_its_version_was_made(bench: Bench) -> None:
    number = bench.learn(MachineId("padova", "filler-1"), seed=7)
    (job,) = bench.jobs.newest()
    assert job.finished_at == AT
    assert job.finished_plant_at == bench.versions.get(number).created_at == AT + timedelta(hours=7)


def test_what_was_learned_can_be_read_back(bench: Bench) -> None:
    bench.learn(A, seed=1)
    bench.learn(B, seed=2)
    champion = bench.versions.champion()
    assert champion
    assert (champion.name, champion.parent, champion.learned) == ("v2", 1, ("padova/a", "padova/b"))
    memory = MemoryStore(bench.database).get(2)
    same(memory.tasks["padova/b"].windows, windows(2).take(range(8)))
    same(memory.tasks["padova/b"].held_out, windows(2).take(range(8, 12)))
    same(memory.tasks["padova/a"].windows, windows(1).take(range(6)))
    assert memory.tasks["padova/a"].frequency == {139: 4, 26: 3}
    assert len(MemoryStore(bench.database).get(1).tasks["padova/a"].windows) == 8, "the old version keeps its own"
    exam = HoldoutStore(bench.database).get(B)
    assert exam
    same(exam.windows, windows(1002))
    assert exam.base_rate == {139: 0.25}
    answers = HoldoutStore(bench.database).results_by_version(B)
    assert np.allclose(answers[2].probabilities, marked(2).probabilities)
    assert np.allclose(answers[1].probabilities, marked(3).probabilities), "what the champion said unseen"
    machine = bench.machines.get(B)
    assert (machine.state, machine.reason, machine.learned_at) == (
        MachineState.LIVE,
        None,
        AT + timedelta(hours=2),
    )


def test_a_versions_figures_are_means_over_the_newest_exams(bench: Bench) -> None:
    holdout_sets = HoldoutStore(bench.database)
    assert holdout_sets.means(1) == {}
    bench.learn(A, seed=1)
    bench.learn(B, seed=2)
    assert holdout_sets.means(2) == pytest.approx({"average_precision": 0.52, "brier_skill": 0.1}), (
        "no F1 was given"
    )


def test_windows_are_stored_once_however_many_versions_remember_them(bench: Bench) -> None:
    for seed, machine in enumerate((A, B, C), start=1):
        bench.learn(machine, seed=seed)
    assert bench.counts()["samples"] == 3


def test_a_rejected_version_is_kept_with_its_reasons_and_the_champion_serves_on(bench: Bench) -> None:
    bench.learn(A, seed=1)
    bench.learn(B, seed=2, passed=False)
    champion = bench.versions.champion()
    assert champion
    assert champion.name == "v1"
    assert bench.versions.get(2).promoted_at is None
    machine = bench.machines.get(B)
    assert (machine.state, machine.reason) == (MachineState.LIVE, Message((FORGOT,)))
    job = bench.jobs.newest()[0]
    assert (job.state, job.message, job.version) == (JobState.REJECTED, Message((FORGOT,)), 2)
    assert bench.learn(C, seed=3) == 3
    assert bench.versions.get(3).learned == ("padova/a", "padova/c"), "what was rejected leaves no trace"


def test_the_first_machine_rejected_has_nothing_to_live_on(bench: Bench) -> None:
    bench.learn(A, seed=1, passed=False)
    assert bench.versions.champion() is None
    assert bench.machines.get(A).state is MachineState.FAILED


def test_a_worker_that_lost_its_lease_commits_nothing(bench: Bench) -> None:
    job = bench.job(A)
    candidate = bench.candidate(A, seed=1)
    lapse(bench.database, LEASE)
    taken = bench.jobs.claim("another", now=AT, lease=LEASE)
    assert taken
    before = bench.counts()
    with pytest.raises(LeaseLost):
        bench.updates.commit(job, candidate, now=AT, plant_now=AT)
    assert bench.counts() == before
    assert bench.updates.commit(taken, candidate, now=AT, plant_now=AT) == 1


def test_what_was_learned_on_an_old_champion_is_not_committed(bench: Bench) -> None:
    bench.learn(A, seed=1)
    bench.learn(B, seed=2)
    job = bench.job(C)
    candidate = bench.candidate(C, seed=3)
    bench.versions.promote(bench.versions.get(1), at=AT + timedelta(days=1), who="me", reason="back")
    before = bench.counts()
    with pytest.raises(ChampionChanged):
        bench.updates.commit(job, candidate, now=AT, plant_now=AT)
    assert bench.counts() == before


def test_what_was_learned_with_a_machine_that_is_gone_is_learned_again(bench: Bench) -> None:
    for seed, machine in enumerate((A, B), start=1):
        bench.learn(machine, seed=seed)
    store = EnrolmentStore(bench.database)
    for let_go in (store.retire, store.erase):
        job = bench.job(C)
        candidate = bench.candidate(C, seed=3)
        name = next(iter(candidate.retained))
        let_go(bench.machines.get(MachineId.parse(name)), who="me", at=AT, plant_at=AT, reason="gone")
        before = bench.counts()
        with pytest.raises(ChampionChanged, match=r"while this was learned with it"):
            bench.updates.commit(job, candidate, now=AT, plant_now=AT)
        assert bench.counts() == before
        bench.jobs.release(job, why=Message.of("again"))


def test_the_last_promotion_counts_even_if_the_clock_was_set_back(bench: Bench) -> None:
    bench.learn(A, seed=1)
    bench.learn(B, seed=2)
    bench.versions.promote(bench.versions.get(1), at=AT - timedelta(days=9), who="me", reason="back")
    champion = bench.versions.champion()
    assert champion
    assert champion.name == "v1"
    with pytest.raises(Conflict, match="serves already"):
        bench.versions.promote(champion, at=AT, who="me", reason="again")


def test_a_failed_machine_lives_once_the_version_that_learned_it_is_forced_to_serve(bench: Bench) -> None:
    bench.learn(A, seed=1, passed=False)
    bench.versions.promote(bench.versions.get(1), at=AT, who="me", reason="better than nothing")
    machine = bench.machines.get(A)
    assert (machine.state, machine.reason, machine.learned_at) == (MachineState.LIVE, None, AT)


def test_a_commit_that_breaks_at_its_end_leaves_nothing_behind(bench: Bench) -> None:
    bench.learn(A, seed=1)
    job = bench.job(B)
    candidate = bench.candidate(B, seed=2)
    broken = replace(candidate, results={**candidate.results, "padova/nobody": result_row(marked(2))})
    before = bench.counts()
    with pytest.raises(KeyError):
        bench.updates.commit(job, broken, now=AT, plant_now=AT)
    assert bench.counts() == before
    assert bench.jobs.get(job.id).state is JobState.RUNNING
    number = bench.updates.commit(job, candidate, now=AT, plant_now=AT)
    assert list(MemoryStore(bench.database).get(number).tasks) == ["padova/a", "padova/b"]


def test_a_refresh_replaces_the_machines_windows_and_its_exam(bench: Bench) -> None:
    bench.learn(A, seed=1)
    bench.learn(B, seed=2)
    bench.learn(A, seed=5)
    champion = bench.versions.champion()
    assert champion
    assert champion.learned == ("padova/b", "padova/a"), "learned anew, it is the newest"
    same(MemoryStore(bench.database).get(3).tasks["padova/a"].windows, windows(5).take(range(8)))
    exam = HoldoutStore(bench.database).get(A)
    assert exam
    same(exam.windows, windows(1005))
    assert set(HoldoutStore(bench.database).results_by_version(A)) == {2, 3}, (
        "only answers to the newest exam can be compared"
    )


def test_a_retired_machine_is_remembered_no_more_and_an_erased_one_leaves_nothing(bench: Bench) -> None:
    for seed, machine in enumerate((A, B, C), start=1):
        bench.learn(machine, seed=seed)
    store = EnrolmentStore(bench.database)
    store.retire(bench.machines.get(A), who="me", at=AT, plant_at=AT, reason=None)
    assert list(MemoryStore(bench.database).get(3).tasks) == ["padova/b", "padova/c"]
    learned_by = store.erase(bench.machines.get(B), who="me", at=AT, plant_at=AT, reason="asked")
    assert learned_by == ["v2", "v3"]
    assert list(MemoryStore(bench.database).get(3).tasks) == ["padova/c"]
    assert bench.counts()["samples"] == 2
    assert HoldoutStore(bench.database).get(B) is None
    assert AuditStore(bench.database).newest()[0].reason == "asked (learned by v2, v3)"


def test_old_weights_go_but_never_those_that_are_needed(bench: Bench) -> None:
    for seed, machine in enumerate((A, B, C), start=1):
        bench.learn(machine, seed=seed)
    for seed in range(4, 8):
        bench.learn(C, seed=seed, passed=False)
    assert bench.versions.prune(keep=2) == ["v5", "v4", "v1"], "not v3, which serves, nor its parent"
    assert [version.name for version in bench.versions.all() if not version.pruned] == ["v7", "v6", "v3", "v2"]
    assert bench.versions.load(bench.versions.get(2))
    assert len(list(bench.versions.weights.path.iterdir())) == 4
    with pytest.raises(Conflict, match="have been deleted"):
        bench.versions.promote(bench.versions.get(4), at=AT, who="me", reason="why not")
    assert len(MemoryStore(bench.database).get(3).tasks["padova/c"].windows) == 8
    assert bench.counts()["samples"] == 5, "of the three machines that v3 knows, and of v6 and v7"
    assert bench.versions.prune(keep=2) == []
    assert bench.learn(C, seed=9) == 8


def test_a_candidate_survives_the_way_between_processes(bench: Bench, tmp_path: Path) -> None:
    bench.learn(A, seed=1)
    candidate = replace(bench.candidate(B, seed=2), undecided=(FORGOT,))
    candidate.write(tmp_path / "candidate")
    taken = Candidate.read(tmp_path / "candidate")
    job = bench.job(B)
    assert bench.updates.commit(job, taken, now=AT, plant_now=AT) == 2
    same(MemoryStore(bench.database).get(2).tasks["padova/b"].windows, windows(2).take(range(8)))
    assert taken.report == candidate.report
    assert (taken.passed, taken.reasons, taken.undecided, taken.targets) == (True, (), (FORGOT,), TARGETS)
    exam = HoldoutStore(bench.database).get(B)
    assert exam
    same(exam.windows, windows(1002))
    answers = HoldoutStore(bench.database).results_by_version(B)
    assert np.array_equal(answers[2].probabilities, marked(2).probabilities)
    assert np.array_equal(answers[1].probabilities, marked(3).probabilities)


@pytest.mark.parametrize("kept", [0, 10, 500, -1])
def test_half_of_what_was_handed_over_is_refused_in_a_sentence(bench: Bench, tmp_path: Path, kept: int) -> None:
    file = tmp_path / "candidate"
    bench.candidate(A, seed=1).write(file)
    file.write_bytes(file.read_bytes()[:kept])
    with pytest.raises(TrainingFailed, match="cannot be read"):
        Candidate.read(file)
