"""Scoring, on SQLite and on PostgreSQL alike: due when it can be known, the same whenever events arrive."""

from collections.abc import Callable, Iterator
from datetime import timedelta
from functools import partial
from itertools import count
from pathlib import Path
from threading import Thread
from uuid import UUID

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import delete

from service.database.engine import Database
from service.database.event_row import FROM_THE_FUTURE
from service.database.tables import weights
from service.machines.models import Machine
from tests.service.conftest import small_model
from tests.support.scoring import AT, CLOSED, GRACE, HORIZON, HOUR, MINUTE, Bench
from wire.enums import Horizon
from wire.timestamps import to_us


@pytest.fixture
def bench(database: Database, tmp_path: Path) -> Bench:
    return Bench(database, tmp_path)


@pytest.fixture
def filler(bench: Bench) -> Machine:
    machine = bench.machine()
    bench.heard(machine, AT + 100 * HOUR)
    return machine


def test_a_forecast_is_scored_when_its_horizon_and_the_grace_are_over(bench: Bench, filler: Machine) -> None:
    bench.said(filler, AT)
    assert bench.score(CLOSED + GRACE - timedelta(microseconds=1)) == 0
    assert bench.score(CLOSED + GRACE) == 1
    assert bench.score(CLOSED + 9 * HOUR) == 0, "once is enough"


def test_came_persisted_and_announced_follow_the_half_open_windows(bench: Bench, filler: Machine) -> None:
    bench.said(filler, AT, 0.9, 0.4)
    bench.raised(filler, (AT, 139), (CLOSED, 26), (AT - MINUTE, 26), (AT - timedelta(minutes=1721), 139))
    bench.score(CLOSED + GRACE)
    assert bench.found(filler) == {AT: ([True, False], [False, True], [True, False])}


def test_a_probability_at_its_threshold_is_announced_as_it_was_served(bench: Bench, filler: Machine) -> None:
    bench.said(filler, AT, 0.49996, 0.4999)
    bench.score(CLOSED + GRACE)
    assert bench.found(filler)[AT][2] == [True, False], "what people saw was rounded to four digits"


def test_the_base_rate_is_the_one_of_that_moment(bench: Bench, filler: Machine) -> None:
    bench.raised(filler, (AT - 48 * HOUR, 137), (AT - 20 * HOUR, 139), (AT + HOUR, 139))
    bench.said(filler, AT)
    bench.said(filler, AT - 47 * HOUR)
    bench.score(CLOSED + GRACE)
    early, late = reversed(bench.outcomes.page(filler, AT - 99 * HOUR, AT + HOUR, limit=9))
    # Hourly horizons that began 48 to 8 hours before AT; eight of the 41 held the alarm of 20 hours before.
    assert late.outcome.base_rate.tolist() == pytest.approx([8 / 41, 0])
    assert np.isnan(early.outcome.base_rate).all(), "no horizon had closed"


def test_the_forecasts_of_an_offline_agent_wait_until_it_is_back(bench: Bench) -> None:
    machine = bench.machine()
    bench.said(machine, AT)
    bench.heard(machine, CLOSED - MINUTE)
    assert bench.score(CLOSED + 50 * HOUR) == 0
    assert bench.outcomes.ended([machine], AT, CLOSED, Horizon.MAIN, closed=CLOSED) == 1
    bench.heard(machine, CLOSED + 51 * HOUR, spooled=2)
    assert bench.score(CLOSED + 51 * HOUR) == 0, "what waits at the machine is not known yet"
    bench.raised(machine, (AT + HOUR, 26))
    assert bench.score() == 0
    bench.heard(machine, CLOSED + 51 * HOUR)
    assert bench.score() == 1
    assert bench.found(machine)[AT][0] == [False, True]
    assert bench.revision_count(machine) == [0]


def test_a_machine_without_agent_is_heard_up_to_its_last_event(bench: Bench) -> None:
    machine = bench.machine()
    bench.said(machine, AT)
    assert bench.score(CLOSED + HOUR) == 0
    bench.raised(machine, (CLOSED - MINUTE, 26))
    assert bench.score() == 0
    bench.raised(machine, (CLOSED, 26))
    assert bench.score() == 1


def test_a_late_event_revises_the_horizons_it_falls_into_and_no_others(bench: Bench, filler: Machine) -> None:
    moments = [AT + hours * HOUR for hours in range(0, 24, 4)]
    for at in moments:
        bench.said(filler, at)
    assert bench.score(moments[-1] + HORIZON + GRACE) == 6
    bench.raised(filler, (AT + 9 * HOUR, 26))
    assert bench.score() == 5, "all later ones are looked at: the event is evidence and base rate to them"
    assert bench.revision_count(filler) == [0, 1, 1, 0, 0, 0]
    found = bench.found(filler)
    assert [found[at][0][1] for at in moments] == [False, True, True, False, False, False]
    assert [found[at][1][1] for at in moments] == [False, False, False, True, True, True]
    assert bench.score() == 0


def test_an_event_sent_again_or_flagged_revises_nothing(bench: Bench, filler: Machine) -> None:
    bench.said(filler, AT)
    bench.raised(filler, (AT + HOUR, 26), epoch=small_epoch())
    bench.score(CLOSED + GRACE)
    bench.raised(filler, (AT + HOUR, 26), epoch=small_epoch())
    bench.raised(filler, (AT + HOUR, 139), flag=FROM_THE_FUTURE)
    bench.raised(bench.machine("filler-2"), (AT + HOUR, 139))
    bench.raised(filler, (CLOSED, 139))
    assert bench.score() == 0


def test_a_horizon_with_lost_events_is_unheard_even_if_that_is_learned_late(bench: Bench, filler: Machine) -> None:
    for hours in (0, 8, 16):
        bench.said(filler, AT + hours * HOUR)
    bench.lost(filler, AT - HOUR, AT - MINUTE)
    assert bench.score(AT + 24 * HOUR + GRACE) == 3
    bench.lost(filler, AT + 8 * HOUR, AT + 9 * HOUR)
    assert bench.score() == 2
    page = bench.outcomes.page(filler, AT, AT + 24 * HOUR, limit=9)
    assert [(one.outcome.unobserved, one.outcome.revision_count) for one in reversed(page)] == [
        (False, 0),
        (True, 1),
        (False, 0),
    ]


def test_what_is_committed_while_scoring_is_under_way_is_not_overlooked(bench: Bench, filler: Machine) -> None:
    bench.said(filler, AT)
    bench.score(CLOSED)  # takes the version's measure; nothing is due yet
    log = bench.events

    class Interrupted:
        """An event log in whose shadow an alarm arrives just after it was read."""

        def __getattr__(self, name: str) -> object:
            return getattr(log, name)

        def gaps(self, *which: object) -> object:
            bench.raised(filler, (AT + HOUR, 26))
            return log.gaps(*which)  # type: ignore[arg-type]

    bench.scoring.events = Interrupted()  # type: ignore[assignment]
    bench.now = CLOSED + GRACE
    bench.scoring.score(filler, bench.machines.agent(filler))
    assert bench.found(filler)[AT][0] == [False, False]
    bench.scoring.events = log
    assert bench.score() == 1
    assert bench.found(filler)[AT][0] == [False, True]


def test_scoring_beside_a_stream_of_late_events_ends_with_the_truth(bench: Bench, filler: Machine) -> None:
    for quarter in range(40):
        bench.said(filler, AT + quarter * 15 * MINUTE)
    bench.now = AT + 99 * HOUR
    alarms = [(AT + minute * MINUTE, 139 if minute % 3 else 26) for minute in range(0, 1000, 7)]

    def send() -> None:
        for alarm in np.random.default_rng(5).permutation(len(alarms)):
            bench.raised(filler, alarms[alarm])

    sender = Thread(target=send)
    sender.start()
    while sender.is_alive():
        bench.score()
    sender.join()
    bench.score()
    for at, (came, _, _) in bench.found(filler).items():
        inside = {code for when, code in alarms if at <= when < at + HORIZON}
        assert came == [139 in inside, 26 in inside]
    assert len(bench.found(filler)) == 40


def test_after_a_standstill_it_catches_up_in_bounded_pieces(bench: Bench, filler: Machine) -> None:
    for quarter in range(25):
        bench.said(filler, AT + quarter * 15 * MINUTE)
    bench.scoring.batch_size = 10
    bench.now = AT + 99 * HOUR
    other = bench.machine("filler-2")
    bench.heard(other, AT + 100 * HOUR)
    bench.said(other, AT)
    assert list(bench.scoring.score_all_due()) == [10, 1, 10, 5], "and the others do not wait for it"


def test_the_near_and_the_far_horizon_are_scored_from_the_events_once_they_have_ended(
    bench: Bench, filler: Machine
) -> None:
    bench.said(filler, AT, 0.5, 0.5, near_and_far=((0.75, 0.25), (0.875, 0.125)))
    bench.said(filler, AT - HOUR, 0.5, 0.5)  # of a version with one horizon
    bench.raised(filler, (AT + HOUR, 139), (AT + 20 * HOUR, 26))
    bench.score(CLOSED + GRACE)
    (near,) = bench.scoring.score_tables(filler, AT - 2 * HOUR, AT + HOUR, Horizon.NEAR)
    assert near.probability.tolist() == [[0.75, 0.25]]
    assert near.occurred.tolist() == [[True, False]]
    assert near.horizon.tolist() == [2 * 3_600_000_000]
    assert bench.scoring.score_tables(filler, AT, AT + HOUR, Horizon.FAR) == [], "24 hours are not over"
    bench.now = AT + 24 * HOUR + GRACE
    (far,) = bench.scoring.score_tables(filler, AT, AT + HOUR, Horizon.FAR)
    assert far.probability.tolist() == [[0.875, 0.125]]
    assert far.occurred.tolist() == [[True, True]]
    assert far.predicted.tolist() == [[True, False]], "predicted from 0.5 on"
    assert bench.scoring.ended([filler], AT, AT + HOUR, Horizon.FAR) == 1


def test_a_lost_span_in_the_far_horizon_leaves_the_near_one_observed(bench: Bench, filler: Machine) -> None:
    bench.said(filler, AT, 0.5, 0.5, near_and_far=((0.75, 0.25), (0.875, 0.125)))
    bench.lost(filler, AT + 10 * HOUR, AT + 11 * HOUR)
    bench.score(AT + 30 * HOUR)
    (near,), (far,) = (
        bench.scoring.score_tables(filler, AT, AT + HOUR, horizon) for horizon in (Horizon.NEAR, Horizon.FAR)
    )
    assert (near.observed.tolist(), far.observed.tolist()) == ([True], [False])


def test_a_version_that_looks_less_far_ahead_does_not_hide_one_that_looks_further(
    bench: Bench, filler: Machine
) -> None:
    short = bench.versions.add_and_promote(small_model(horizon=HOUR), report={}, at=AT)
    bench.said(filler, AT)
    bench.said(filler, AT + 15 * MINUTE, version=short)
    assert bench.score(AT + 75 * MINUTE + GRACE) == 1
    assert bench.score(CLOSED + GRACE) == 1
    assert set(bench.found(filler)) == {AT, AT + 15 * MINUTE}


def test_weights_may_go_once_a_version_is_measured_and_others_are_scored_without_them(
    bench: Bench, filler: Machine, tmp_path: Path
) -> None:
    bench.score(AT)
    gone = bench.versions.add_and_promote(small_model(seed=7), report={}, at=AT)
    for file in tmp_path.glob("*.safetensors"):
        file.unlink()
    with bench.versions.database.write() as connection:
        connection.execute(delete(weights))
    bench.said(filler, AT)
    bench.said(filler, AT + 15 * MINUTE, version=gone)
    assert bench.score(AT + 99 * HOUR) == 1
    assert set(bench.found(filler)) == {AT}


def small_epoch() -> UUID:
    return UUID("0f9d9a3c-9d0e-4a39-8f0a-5b8f3c9c2a11")


_NAMES = count()
_ALARMS = st.lists(st.tuples(st.integers(-2000, 2000), st.sampled_from([26, 137, 139])), min_size=1, max_size=25)

_GAPS = st.lists(st.tuples(st.integers(-2000, 2000), st.integers(0, 300)), max_size=2)


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    folder = tmp_path_factory.mktemp("shared")
    database = Database(f"sqlite:///{folder / 'alarmcast.sqlite3'}")
    database.upgrade()
    yield Bench(database, folder)
    database.close()


@settings(max_examples=30, deadline=None)
@given(alarms=_ALARMS, lost=_GAPS, arrival=st.data())
def test_outcomes_are_the_same_for_any_order_of_arrival(
    shared: Bench, alarms: list[tuple[int, int]], lost: list[tuple[int, int]], arrival: st.DataObject
) -> None:
    moments = [AT + hours * HOUR for hours in range(-12, 12, 4)]
    gaps = [(AT + start * MINUTE, AT + (start + length) * MINUTE) for start, length in lost]
    settled, unsettled = (shared.machine(f"filler-{next(_NAMES)}") for _ in range(2))
    for machine in (settled, unsettled):
        for at in moments:
            shared.said(machine, at)
    raised = [(AT + minutes * MINUTE, code) for minutes, code in alarms]
    shared.raised(settled, *raised)
    for gap in gaps:
        shared.lost(settled, *gap)
    shared.now = AT - 40 * HOUR
    news: list[Callable[[], object]] = [partial(shared.raised, unsettled, alarm) for alarm in raised]
    news += [partial(shared.lost, unsettled, *gap) for gap in gaps]
    for arrive in arrival.draw(st.permutations(news)):
        shared.now += arrival.draw(st.integers(0, 6)) * HOUR
        arrive()
        if arrival.draw(st.booleans()):
            shared.heard(unsettled, shared.now)
            shared.score()
    for machine in (settled, unsettled):
        shared.heard(machine, AT + 99 * HOUR)
    shared.score(AT + 99 * HOUR)
    assert outcomes(shared, unsettled) == outcomes(shared, settled)
    assert len(outcomes(shared, settled)) == len(moments)


def outcomes(bench: Bench, machine: Machine) -> list[tuple[object, ...]]:
    page = bench.outcomes.page(machine, AT - 99 * HOUR, AT + 99 * HOUR, limit=999)
    return [
        (
            one.outcome.as_of_us - to_us(AT),
            one.outcome.event_count,
            one.outcome.unobserved,
            one.outcome.occurred.tolist(),
            one.outcome.persisted.tolist(),
            one.outcome.predicted.tolist(),
            np.nan_to_num(one.outcome.base_rate, nan=-1).tolist(),
        )
        for one in page
    ]
