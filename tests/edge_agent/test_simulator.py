"""The simulated fleet behaves like the published one, and the same way every time it is asked."""

import bisect
import csv
import gzip
import os
import re
import subprocess
import sys
from collections import Counter
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edge_agent.simulator import MachineProfile, alarms, machine_profile
from edge_agent.simulator.catalogue import catalogue_csv
from edge_agent.simulator.log_file import write_log
from wire.alarm import Alarm

SEED = 1
START = datetime(2024, 1, 1, tzinfo=UTC)  # a Monday
DAYS = 180
END = START + timedelta(days=DAYS)
FOREVER = datetime.max.replace(tzinfo=UTC)
EPISODE_GAP = 30.0  # minutes
TARGETS = {21, 23, 24, 25, 26, 28, 29, 31, 45, 48, 53, 97, 132, 137, 139}

Fleet = dict[int, list[Alarm]]


@pytest.fixture(scope="module")
def fleet() -> Fleet:
    return {index: list(alarms(machine_profile(SEED, index), START, END)) for index in range(20)}


def minutes(earlier: Alarm, later: Alarm) -> float:
    return (later.at - earlier.at) / timedelta(minutes=1)


def episodes(log: list[Alarm]) -> list[list[Alarm]]:
    found = [[log[0]]]
    for earlier, later in pairwise(log):
        if minutes(earlier, later) > EPISODE_GAP:
            found.append([])
        found[-1].append(later)
    return found


def percentiles(name: str, values: list[float]) -> dict[str, float]:
    ordered = sorted(values)
    ranks = (25, 50, 75, 90, 95, 99, 99.9)
    return {f"{name} p{rank}": ordered[int(rank / 100 * (len(ordered) - 1))] for rank in ranks}


@pytest.fixture(scope="module")
def figures(fleet: Fleet) -> dict[str, float]:
    """Every statistic of the published table, of the simulated fleet."""
    everything = [alarm for log in fleet.values() for alarm in log]
    codes = Counter(alarm.code for alarm in everything)
    weekdays = Counter(alarm.at.weekday() for alarm in everything)
    gaps = [minutes(*pair) for log in fleet.values() for pair in pairwise(log)]
    repeats = [a.code == b.code for log in fleet.values() for a, b in pairwise(log)]
    spans = [episode for log in fleet.values() for episode in episodes(log)]
    distinct = Counter(len({alarm.code for alarm in span}) for span in spans)
    rows = sorted(len(log) for log in fleet.values())
    changes = Counter((a.code, b.code) for log in fleet.values() for a, b in pairwise(log) if a.code != b.code)
    leaving = Counter[int]()
    for (code, _), count in changes.items():
        leaving[code] += count
    return (
        percentiles("gap", gaps)
        | percentiles("episode alarms", [float(len(span)) for span in spans])
        | percentiles("episode minutes", [minutes(span[0], span[-1]) for span in spans])
        | percentiles("calm", [gap for gap in gaps if gap > EPISODE_GAP])
        | {f"share of {code}": 100 * count / len(everything) for code, count in codes.items()}
        | {f"weekday {day}": 100 * count / len(everything) for day, count in weekdays.items()}
        | {f"distinct {codes}": 100 * count / len(spans) for codes, count in distinct.items()}
        | {f"{a} to {b}": 100 * count / leaving[a] for (a, b), count in changes.items()}
        | {
            "same code next": 100 * sum(repeats) / len(repeats),
            "codes": len(codes),
            "largest episode": max(len(span) for span in spans),
            "longest episode": max(minutes(span[0], span[-1]) for span in spans),
            "rows of the five busiest": 100 * sum(rows[-5:]) / sum(rows),
            "rows of the five quietest": 100 * sum(rows[:5]) / sum(rows),
        }
    )


@pytest.mark.parametrize(
    ("statistic", "published", "tolerance"),
    [
        ("gap p25", 0.53, 0.1),
        ("gap p50", 0.98, 0.15),
        ("gap p75", 7.0, 0.2),
        ("gap p90", 25.4, 0.2),
        ("gap p95", 51.9, 0.15),
        ("gap p99", 387, 0.2),
        ("gap p99.9", 2386, 0.45),  # half a year has only a few dozen such silences per machine
        ("same code next", 71.7, 0.03),
        ("share of 98", 20.4, 0.15),
        ("share of 11", 13.7, 0.15),
        ("share of 26", 12.9, 0.2),
        ("share of 137", 12.9, 0.25),
        ("share of 139", 10.9, 0.25),
        ("share of 29", 6.8, 0.25),
        ("share of 31", 5.55, 0.2),
        ("share of 21", 2.25, 0.3),
        ("share of 32", 2.11, 0.35),
        ("share of 28", 1.28, 0.4),
        ("episode alarms p25", 2, 0.5),  # a whole number: 2 or 3
        ("episode alarms p50", 6, 0.17),
        ("episode alarms p75", 13, 0.16),
        ("episode alarms p90", 27, 0.15),
        ("episode alarms p95", 41, 0.15),
        ("episode alarms p99", 84, 0.25),
        ("episode minutes p25", 1.4, 0.3),
        ("episode minutes p50", 20.8, 0.2),
        ("episode minutes p75", 55.8, 0.15),
        ("episode minutes p90", 107, 0.15),
        ("episode minutes p95", 148, 0.15),
        ("episode minutes p99", 260, 0.2),
        ("longest episode", 897, 0.4),
        ("distinct 1", 40.7, 0.1),
        ("distinct 2", 23.8, 0.2),
        ("distinct 3", 15.2, 0.15),
        ("distinct 4", 9.2, 0.25),
        ("distinct 5", 5.4, 0.3),
        ("distinct 6", 3.0, 0.35),
        ("calm p25", 40.5, 0.1),
        ("calm p50", 59.8, 0.1),
        ("calm p75", 110, 0.25),
        ("calm p90", 527, 0.25),
        ("calm p99", 2568, 0.5),  # the published log has fewer machines that run a few days a week
        ("weekday 0", 15.6, 0.15),
        ("weekday 1", 16.2, 0.15),
        ("weekday 2", 15.6, 0.1),
        ("weekday 3", 14.0, 0.1),
        ("weekday 4", 14.9, 0.1),
        ("weekday 5", 13.1, 0.12),
        ("weekday 6", 10.7, 0.15),
        ("codes", 154, 0.16),  # in sixteen months; the rarest do not show in six
        ("rows of the five busiest", 53.7, 0.15),
        ("rows of the five quietest", 3.8, 0.7),  # the published quiet machines were watched for weeks only
        ("98 to 11", 35, 0.25),
        ("11 to 98", 39, 0.25),
        ("31 to 26", 30, 0.3),
        ("29 to 26", 28, 0.3),
        ("97 to 139", 35, 0.35),
        ("137 to 11", 21, 0.5),
    ],
)
def test_statistic_is_near_the_published_one(
    figures: dict[str, float], statistic: str, published: float, tolerance: float
) -> None:
    assert figures[statistic] == pytest.approx(published, rel=tolerance)


def test_a_flood_is_hundreds_of_alarms_of_many_codes_in_minutes_after_a_week_of_silence(fleet: Fleet) -> None:
    floods = 0
    for log in fleet.values():
        for before, span in pairwise(episodes(log)):
            first_minutes = [alarm for alarm in span if minutes(span[0], alarm) <= 16]
            if len(first_minutes) >= 190:
                floods += 1
                assert len({alarm.code for alarm in first_minutes}) >= 10
                assert minutes(before[-1], span[0]) > 6 * 24 * 60
                assert len(first_minutes) <= 1849 + 100  # the largest published, and what else went on
    assert 1 <= floods <= 20


def test_machines_lean_to_different_codes(fleet: Fleet) -> None:
    shares = [
        {code: count / len(log) for code, count in Counter(alarm.code for alarm in log).items()}
        for log in fleet.values()
    ]
    for place, one in enumerate(shares):
        for other in shares[:place]:
            difference = sum(abs(one.get(code, 0) - other.get(code, 0)) for code in one | other) / 2
            assert difference > 0.1


def test_machines_own_their_equipment_for_good(fleet: Fleet) -> None:
    with_caps = [log for log in fleet.values() if any(alarm.code == 139 for alarm in log)]
    assert 4 <= len(with_caps) <= 8
    for log in with_caps:
        weeks = {alarm.at.isocalendar().week for alarm in log}
        weeks_with_caps = {alarm.at.isocalendar().week for alarm in log if alarm.code == 139}
        assert len(weeks_with_caps) > 0.8 * len(weeks)


def test_a_machine_keeps_its_days_off(fleet: Fleet) -> None:
    resting = [index for index in fleet if machine_profile(SEED, index).days_off]
    assert resting
    for index in resting:
        machine = machine_profile(SEED, index)
        # A shift that starts on Saturday evening may well end on Sunday.
        stray = [a for a in fleet[index] if (a.at - _into_shift(machine)).weekday() in machine.days_off]
        assert len(stray) < 0.08 * len(fleet[index])


def _into_shift(machine: MachineProfile) -> timedelta:
    return timedelta(hours=machine.shift_start)


def test_a_machine_of_one_shift_is_quiet_outside_it(fleet: Fleet) -> None:
    one_shift = [index for index in fleet if machine_profile(SEED, index).shift_hours <= 12]
    assert one_shift
    for index in one_shift:
        machine = machine_profile(SEED, index)
        since_start = [
            ((alarm.at - _into_shift(machine)).hour * 60 + (alarm.at - _into_shift(machine)).minute) / 60
            for alarm in fleet[index]
        ]
        inside = sum(hours <= machine.shift_hours + 1 for hours in since_start)
        assert inside > 0.9 * len(since_start)


def test_the_fleet_is_busier_at_noon_than_at_night(fleet: Fleet) -> None:
    hours = Counter(alarm.at.hour for log in fleet.values() for alarm in log)
    noon, night = (
        sum(hours[hour] for hour in range(10, 16)),
        sum(hours[hour] for hour in (22, 23, 0, 1, 2, 3)),
    )
    assert noon / night == pytest.approx(33.6 / 18.1, rel=0.4)  # the reconstructed log, percent of its alarms


def _lift(fleet: Fleet, sign: int, code: int) -> float:
    """How many times likelier ``code`` is within 8 hours if ``sign`` was there in the 1720 minutes before."""
    lookback, horizon = timedelta(minutes=1720), timedelta(hours=8)
    seen: Counter[bool] = Counter()
    came: Counter[bool] = Counter()
    for log in fleet.values():
        every, signs, codes = ([a.at for a in log if wanted in (None, a.code)] for wanted in (None, sign, code))
        for hour in range(29, DAYS * 24, 2):
            at = START + timedelta(hours=hour)
            if not _any_between(every, at, at + horizon):
                continue
            signed = _any_between(signs, at - lookback, at)
            seen[signed] += 1
            came[signed] += _any_between(codes, at, at + horizon)
    return (came[True] / seen[True]) / (came[False] / seen[False])


def _any_between(times: list[datetime], start: datetime, end: datetime) -> bool:
    place = bisect.bisect_left(times, start)
    return place < len(times) and times[place] < end


@pytest.mark.parametrize(("sign", "code"), [(17, 24), (35, 23), (40, 48), (94, 53), (115, 132)])
def test_a_rare_code_is_several_times_likelier_after_its_sign(fleet: Fleet, sign: int, code: int) -> None:
    assert _lift(fleet, sign, code) > 5


@pytest.mark.parametrize(("code", "published"), [(21, 4.8), (28, 3.5), (29, 2.5), (31, 2.1), (45, 2.9)])
def test_a_code_seen_lately_is_likelier_to_come_again(fleet: Fleet, code: int, published: float) -> None:
    assert _lift(fleet, code, code) == pytest.approx(published, rel=0.5)


def test_every_alarm_is_in_utc_to_the_millisecond_and_later_than_the_one_before(fleet: Fleet) -> None:
    for log in fleet.values():
        assert all(alarm.at.tzinfo is UTC and alarm.at.microsecond % 1000 == 0 for alarm in log)
        assert all(earlier.at < later.at for earlier, later in pairwise(log))
        assert log[0].at >= START
        assert log[-1].at < END


def durations(days: int) -> st.SearchStrategy[timedelta]:
    # One large integer of milliseconds would do, but Hypothesis draws those small and hardly leaves midnight.
    return st.builds(
        timedelta,
        days=st.integers(0, days),
        hours=st.integers(0, 23),
        minutes=st.integers(0, 59),
        milliseconds=st.integers(0, 59_999),
    )


@settings(max_examples=60, deadline=None)
@given(index=st.integers(0, 60), passed=durations(60), first=durations(6), second=durations(6))
def test_the_alarms_of_two_adjoining_intervals_are_those_of_the_whole(
    index: int, passed: timedelta, first: timedelta, second: timedelta
) -> None:
    machine, start = machine_profile(SEED, index), START + passed
    middle, end = start + first, start + first + second
    whole = list(alarms(machine, start, end))
    assert [*alarms(machine, start, middle), *alarms(machine, middle, end)] == whole


@pytest.mark.parametrize(
    ("index", "begun"),
    # Days from which, but for the bound on how long anything lasts, trouble would reach past that bound.
    [(3, datetime(2024, 5, 11, tzinfo=UTC)), (16, datetime(2024, 2, 5, tzinfo=UTC))],
)
def test_trouble_that_drags_on_for_days_does_not_depend_on_where_one_starts_to_look(
    index: int, begun: datetime
) -> None:
    machine, end = machine_profile(SEED, index), begun + timedelta(days=7)
    whole = list(alarms(machine, begun, end))
    for days in range(7):
        cut = begun + timedelta(days=days)
        assert list(alarms(machine, cut, end)) == [alarm for alarm in whole if alarm.at >= cut]


def test_no_two_alarms_share_a_millisecond_even_in_a_flood() -> None:
    flooded = datetime(2024, 8, 16, tzinfo=UTC)
    log = list(alarms(machine_profile(SEED, 17), flooded, flooded + timedelta(days=1)))
    assert len(log) > 1000
    assert all(earlier.at < later.at for earlier, later in pairwise(log))


@pytest.mark.parametrize("index", [0, 1, 2])
def test_cutting_exactly_at_an_alarm_puts_it_in_the_later_part(fleet: Fleet, index: int) -> None:
    cut = fleet[index][100].at
    machine = machine_profile(SEED, index)
    assert list(alarms(machine, START, cut)) == fleet[index][:100]
    assert next(alarms(machine, cut, END)) == fleet[index][100]


def test_another_process_with_another_hash_seed_tells_the_same() -> None:
    program = (
        "from datetime import UTC, datetime, timedelta\n"
        "from edge_agent.simulator import alarms, machine_profile\n"
        "start = datetime(2024, 1, 1, tzinfo=UTC)\n"
        "end = start + timedelta(days=9)\n"
        "for at, code in alarms(machine_profile(1, 6), start, end): print(at.isoformat(), code)\n"
    )
    told = subprocess.run(
        [sys.executable, "-c", program],
        env=os.environ | {"PYTHONHASHSEED": "4711"},
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.splitlines()
    expected = alarms(machine_profile(1, 6), START, START + timedelta(days=9))
    assert told == [f"{alarm.at.isoformat()} {alarm.code}" for alarm in expected]


def test_another_seed_is_another_fleet() -> None:
    week = START + timedelta(days=7)
    assert machine_profile(1, 0) == machine_profile(1, 0)
    assert machine_profile(1, 0) != machine_profile(2, 0)
    assert list(alarms(machine_profile(1, 0), START, week)) != list(alarms(machine_profile(2, 0), START, week))


def test_an_unbounded_stream_starts_and_goes_on() -> None:
    stream = alarms(
        machine_profile(SEED, 3), START, FOREVER
    )  # one that was drawn up before it is asked would not end
    assert next(stream).at >= START
    assert all(earlier.at < later.at for earlier, later in pairwise(next(stream) for _ in range(1000)))


def test_the_catalogue_knows_every_code_that_can_come_and_exactly_the_fifteen_targets(fleet: Fleet) -> None:
    rows = list(csv.DictReader(catalogue_csv().splitlines()))
    codes = {int(row["code"]) for row in rows}
    assert len(codes) == len(rows) == 154
    assert {alarm.code for log in fleet.values() for alarm in log} <= codes
    assert {code for index in range(60) for code in machine_profile(SEED, index).codes} == codes
    assert {int(row["code"]) for row in rows if row["target"] == "yes"} == TARGETS
    assert {row["target"] for row in rows} == {"yes", "no"}
    assert {row["severity"] for row in rows} == {"low", "medium", "high"}
    assert len({row["text"] for row in rows}) == 154
    assert all(row["text"].strip() for row in rows)


@pytest.mark.parametrize("name", ["alarms.csv", "alarms.csv.gz"])
def test_a_log_file_has_the_raw_layout_with_all_machines_in_order_of_time(tmp_path: Path, name: str) -> None:
    path, end = tmp_path / name, START + timedelta(days=3)
    written = write_log(path, machines=3, days=2.5, end=end, seed=SEED, first=5)
    text = gzip.decompress(path.read_bytes()).decode() if name.endswith(".gz") else path.read_text()
    header, *rows = text.splitlines()
    assert header == "timestamp,alarm,serial"
    assert written == len(rows) > 50
    assert all(re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3}000,\d+,[567]", row) for row in rows)
    assert rows == sorted(rows, key=lambda row: row.split(",")[0])
    sixth = [alarm.code for alarm in alarms(machine_profile(SEED, 6), end - timedelta(days=2.5), end)]
    assert [int(row.split(",")[1]) for row in rows if row.endswith(",6")] == sixth
