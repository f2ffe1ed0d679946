"""Floods, chatter, standing alarms and their tallies, each beside its definition written out."""

from collections import Counter
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from forecasting.series import AlarmSeries
from service.alarm_metrics.chatter import CodeRun, find_bursts, find_standing, is_chattering
from service.alarm_metrics.flood import Flood, find_floods
from service.alarm_metrics.models import (
    AlarmCounts,
    ExcludedSpan,
    MachineAlarms,
    alarms_per_day,
    count_by_code,
    count_by_group,
    exclude,
    rate_band,
)
from service.alarm_metrics.time_bins import TimeBins
from wire.enums import RateBand
from wire.identity import MachineId
from wire.timestamps import to_us

SECOND = 1_000_000
MINUTE = 60 * SECOND
START = to_us(datetime(2026, 11, 16, tzinfo=UTC))
FILLER = MachineId("padova", "filler-1")
HALF_MINUTE = 30 * SECOND
Alarm = tuple[int, int]


def series(*alarms: Alarm) -> AlarmSeries:
    rows = sorted(alarms)
    return AlarmSeries(
        np.array([at for at, _ in rows], dtype=np.int64), np.array([code for _, code in rows], dtype=np.int64)
    )


def spaced(unit: int, longest: int) -> st.SearchStrategy[list[Alarm]]:
    """Alarms of three codes, each some units after the one before, often none."""
    steps = st.tuples(st.integers(0, longest), st.integers(1, 3))

    def walk(taken: list[Alarm]) -> list[Alarm]:
        at, found = START, []
        for step, code in taken:
            at += step * unit
            found.append((at, code))
        return sorted(found)

    return st.lists(steps, max_size=90).map(walk)


def floods_by_definition(alarms: list[Alarm]) -> list[Flood]:
    """Walk through time half a minute at a time, and look at the last ten minutes at every step."""
    found: list[Flood] = []
    start: int | None = None
    end = START
    for at in range(START, max((at for at, _ in alarms), default=START) + 11 * MINUTE, HALF_MINUTE):
        recent = [moment for moment, _ in alarms if at - 10 * MINUTE < moment <= at]
        if start is None and len(recent) > 10:
            start = min(moment for moment in recent if moment >= end)
        elif start is not None and len(recent) < 5:
            end = at
            inside = [(moment, code) for moment, code in alarms if start <= moment < end]
            peak = max(
                sum(1 for other, _ in alarms if moment - 10 * MINUTE < other <= moment) for moment, _ in inside
            )
            codes = Counter(code for _, code in inside)
            top = min(codes, key=lambda code: (-codes[code], code))
            found.append(Flood(start, end, len(inside), peak, top))
            start = None
    assert start is None
    return found


@given(spaced(HALF_MINUTE, 4))
def test_floods_are_what_the_definition_says(alarms: list[Alarm]) -> None:
    assert find_floods(series(*alarms)) == floods_by_definition(alarms)


def test_ten_alarms_in_ten_minutes_are_no_flood_and_eleven_are() -> None:
    ten = [(START + n * MINUTE, 1) for n in range(10)]
    assert find_floods(series(*ten)) == []
    assert find_floods(series(*ten, (START + 10 * MINUTE, 1))) == [], "the first is ten minutes old by then"
    (flood,) = find_floods(series(*ten, (START + 10 * MINUTE - 1, 2)))
    assert (flood.start_us, flood.alarms, flood.peak, flood.top_code) == (START, 11, 11, 1)
    assert flood.end_us == START + 16 * MINUTE, "when the alarm of minute 6 leaves, four are left"


def test_a_flood_goes_on_while_five_alarms_come_in_ten_minutes() -> None:
    burst = [(START + n * SECOND, 1) for n in range(11)]
    tail = [(START + n * 2 * MINUTE, 2) for n in range(1, 31)]
    (flood,) = find_floods(series(*burst, *tail))
    assert flood.end_us == START + 62 * MINUTE
    thin = [(START + n * 150 * SECOND, 2) for n in range(1, 31)]
    (short,) = find_floods(series(*burst, *thin))
    assert short.end_us == START + 10 * MINUTE + 10 * SECOND


@given(spaced(10 * SECOND, 5))
def test_an_alarm_chatters_if_some_three_of_its_code_lie_within_a_minute(alarms: list[Alarm]) -> None:
    found = series(*alarms)
    expected = [
        any(
            sum(1 for other, same in alarms if same == code and first <= other < first + MINUTE) >= 3
            for first, same in alarms
            if same == code and first <= at < first + MINUTE
        )
        for at, code in alarms
    ]
    assert is_chattering(found).tolist() == expected


@given(spaced(10 * SECOND, 5))
def test_bursts_hold_every_chattering_alarm_once_and_a_minute_parts_them(alarms: list[Alarm]) -> None:
    found = series(*alarms)
    chatters = is_chattering(found)
    made = find_bursts(found, chatters)
    assert sum(burst.alarms for burst in made) == chatters.sum()
    assert all(burst.alarms >= 3 for burst in made)
    assert [burst.first_us for burst in made] == sorted(burst.first_us for burst in made)
    for code in (1, 2, 3):
        own = [burst for burst in made if burst.code == code]
        assert all(later.first_us - earlier.last_us >= MINUTE for earlier, later in pairwise(own))
        loud = found.times[chatters & (found.codes == code)].tolist()
        for burst in own:
            inside = [at for at in loud if burst.first_us <= at <= burst.last_us]
            assert len(inside) == burst.alarms
            assert all(after - before < MINUTE for before, after in pairwise(inside))


def standing_by_definition(alarms: list[Alarm]) -> set[tuple[int, int, int, int]]:
    found = set()
    for code in {code for _, code in alarms}:
        run: list[int] = []
        for at in [*(at for at, own in alarms if own == code), START + 10**18]:
            if run and at - run[-1] > 60 * MINUTE:
                if run[-1] - run[0] > 24 * 60 * MINUTE:
                    found.add((code, run[0], run[-1], len(run)))
                run = []
            run.append(at)
    return found


def runs(taken: list[tuple[int, int, int, int]]) -> list[Alarm]:
    """Alarms of a code every so many minutes, about a day long, one run begun some hours after the other."""
    return sorted(
        (START + (sum(one[0] for one in taken[: place + 1]) * 60 + n * step) * MINUTE, code)
        for place, (_, step, count, code) in enumerate(taken)
        for n in range(count)
    )


@given(
    st.lists(
        st.tuples(st.integers(0, 30), st.integers(57, 61), st.integers(1, 28), st.integers(1, 2)), max_size=5
    ).map(runs)
)
@example([(START + n * 60 * MINUTE, 1) for n in range(25)])  # 24 hours exactly
@example([(START + n * 60 * MINUTE, 1) for n in range(26)])
def test_a_standing_alarm_lasts_more_than_a_day_without_a_pause_of_more_than_an_hour(alarms: list[Alarm]) -> None:
    found = find_standing(series(*alarms))
    assert {(one.code, one.first_us, one.last_us, one.alarms) for one in found} == standing_by_definition(alarms)
    lengths = [one.last_us - one.first_us for one in found]
    assert lengths == sorted(lengths, reverse=True)


def test_twenty_four_hours_are_not_yet_more_than_twenty_four_hours() -> None:
    hourly = [(START + n * 60 * MINUTE, 7) for n in range(26)]
    assert find_standing(series(*hourly[:25])) == []
    assert find_standing(series(*hourly)) == [CodeRun(7, START, START + 25 * 60 * MINUTE, 26)]
    with_a_pause = [*hourly[:10], *((at + 1, code) for at, code in hourly[10:])]
    assert find_standing(series(*with_a_pause)) == []


@pytest.mark.parametrize(
    ("rate", "expected"),
    [
        (0, RateBand.ACCEPTABLE),
        (150, RateBand.ACCEPTABLE),
        (150.1, RateBand.MANAGEABLE),
        (299.9, RateBand.MANAGEABLE),
        (300, RateBand.EXCESSIVE),
    ],
)
def test_the_bands_are_those_of_the_standard(rate: float, expected: RateBand) -> None:
    assert rate_band(rate) is expected


def test_a_rate_is_over_the_time_watched_and_too_little_of_it_gives_none() -> None:
    assert alarms_per_day(50, 8 * 60 * MINUTE) == 150
    assert alarms_per_day(1, 30 * MINUTE) == 48
    assert alarms_per_day(1, 30 * MINUTE - 1) is None


SLICES = TimeBins(
    np.array([START, START + 5 * MINUTE, START + 20 * MINUTE]),
    np.array([START + 5 * MINUTE, START + 15 * MINUTE, START + 30 * MINUTE]),
    np.array([4, 2, 4]),
)


@given(spaced(HALF_MINUTE, 4))
def test_tallies_count_each_group_as_if_it_were_looked_at_alone(alarms: list[Alarm]) -> None:
    seen = MachineAlarms(series(*alarms))
    watched = (START + 2 * MINUTE, START + 25 * MINUTE)
    found = dict(count_by_group(seen, SLICES, watched))
    assert found.keys() == {2, 4}
    for group, tally in found.items():
        own = SLICES.for_group(group)
        spans = list(zip(own.starts.tolist(), own.ends.tolist(), strict=True))
        chosen = [place for place, (at, _) in enumerate(alarms) if any(start <= at < end for start, end in spans)]
        wet = [
            (max(start, flood.start_us, watched[0]), min(end, flood.end_us, watched[1]))
            for start, end in spans
            for flood in seen.floods
        ]
        touching = [
            flood
            for flood in seen.floods
            if any(flood.start_us < end and flood.end_us > start for start, end in spans)
        ]
        assert tally == AlarmCounts(
            alarms=len(chosen),
            machines=int(bool(chosen)),
            monitored_us=sum(min(end, watched[1]) - max(start, watched[0]) for start, end in spans),
            peak=max(
                (
                    sum(1 for other, _ in alarms if alarms[place][0] - 10 * MINUTE < other <= alarms[place][0])
                    for place in chosen
                ),
                default=0,
            ),
            floods=len(touching),
            flood_us=sum(max(0, end - start) for start, end in wet),
            in_floods=sum(
                any(flood.start_us <= alarms[place][0] < flood.end_us for flood in seen.floods) for place in chosen
            ),
            chattering=int(seen.chatters[chosen].sum()) if chosen else 0,
            standing=0,
        )


@given(spaced(HALF_MINUTE, 4))
def test_codes_add_up_to_the_total_and_have_peaks_of_their_own(alarms: list[Alarm]) -> None:
    seen = MachineAlarms(series(*alarms))
    (total,) = [tally for _, tally in count_by_group(seen, SLICES.ungrouped(), (START, START + MINUTE))]
    codes = dict(count_by_code(seen, SLICES))
    for name in ("alarms", "in_floods", "chattering"):
        assert sum(getattr(tally, name) for tally in codes.values()) == getattr(total, name)
    for code, tally in codes.items():
        own = series(*((at, same) for at, same in alarms if same == code))
        (alone,) = [one for _, one in count_by_group(MachineAlarms(own), SLICES.ungrouped(), (0, 0))]
        assert (tally.peak, tally.floods, tally.band) == (alone.peak, None, None)


def test_a_standing_alarm_counts_in_each_group_in_which_it_was_raised_and_once_in_the_total() -> None:
    hour = 60 * MINUTE
    seen = MachineAlarms(series(*((START + n * hour, 7) for n in range(30))))
    halves = TimeBins(
        np.array([START - hour, START + 10 * hour, START + 40 * hour]),
        np.array([START + 10 * hour, START + 40 * hour, START + 41 * hour]),
        np.array([0, 1, 2]),
    )
    found = dict(count_by_group(seen, halves, (START, START + 40 * hour)))
    assert [found[group].standing for group in (0, 1, 2)] == [1, 1, 0]
    assert [tally.standing for _, tally in count_by_group(seen, halves.ungrouped(), (0, 0))] == [1]
    assert dict(count_by_code(seen, halves))[7].standing == 1


def test_tallies_add_up_over_machines_and_the_peak_is_the_highest() -> None:
    day = timedelta(days=1) // timedelta(microseconds=1)
    one = AlarmCounts(300, 1, day, 12, 2, day // 4, 30, 6, 1)
    both = one + AlarmCounts(0, 0, day, 3, 0, 0, 0, 0, 0)
    assert (both.alarms_per_day, both.band, both.flood_share, both.peak) == (150, RateBand.ACCEPTABLE, 0.125, 12)
    assert (one.alarms_per_day, one.band, one.flood_share) == (300, RateBand.EXCESSIVE, 0.25)
    assert (AlarmCounts().alarms_per_day, AlarmCounts().band, AlarmCounts().flood_share) == (None, None, None)


def test_what_is_shelved_is_left_out_only_of_its_machine_its_code_and_its_time() -> None:
    whole = series((START, 1), (START, 2), (START + MINUTE, 1), (START + 2 * MINUTE, 1))
    shelved = ExcludedSpan(FILLER, 1, START, START + 2 * MINUTE)
    kept = exclude(whole, FILLER, [shelved])
    assert list(zip(kept.times.tolist(), kept.codes.tolist(), strict=True)) == [
        (START, 2),
        (START + 2 * MINUTE, 1),
    ]
    assert exclude(whole, MachineId("padova", "filler-2"), [shelved]) is whole
