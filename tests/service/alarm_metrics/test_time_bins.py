"""Days, hours and shifts by the clock on the plant's wall, also on the days when it changes."""

from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.alarm_metrics.time_bins import TimeBins, by_daily_times, by_days, by_hours
from wire.timestamps import from_us, to_us

ROME, KOLKATA = ZoneInfo("Europe/Rome"), ZoneInfo("Asia/Kolkata")
SHIFTS = [time(6), time(14), time(22)]
EARLY, LATE, NIGHT = 0, 1, 2
HOUR = timedelta(hours=1)


def told(slices: TimeBins, zone: ZoneInfo) -> list[tuple[str, str, int]]:
    rows = zip(slices.starts.tolist(), slices.ends.tolist(), slices.groups.tolist(), strict=True)
    return [
        (f"{from_us(start).astimezone(zone):%d %H:%M}", f"{from_us(end).astimezone(zone):%d %H:%M}", group)
        for start, end, group in rows
    ]


def hours(slices: TimeBins) -> dict[int, float]:
    return {
        int(group): float((slices.for_group(group).ends - slices.for_group(group).starts).sum() / 3.6e9)
        for group in np.unique(slices.groups)
    }


def local(text: str, zone: ZoneInfo = ROME) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=zone).astimezone(UTC)


def test_shifts_follow_the_plants_clock_and_the_span_cuts_the_first_and_the_last() -> None:
    found = by_daily_times(local("2026-11-16T05:00"), local("2026-11-17T07:30"), ROME, SHIFTS)
    assert told(found, ROME) == [
        ("16 05:00", "16 06:00", NIGHT),
        ("16 06:00", "16 14:00", EARLY),
        ("16 14:00", "16 22:00", LATE),
        ("16 22:00", "17 06:00", NIGHT),
        ("17 06:00", "17 07:30", EARLY),
    ]


@pytest.mark.parametrize(
    ("day", "night"), [("2026-03-29", 7), ("2026-10-25", 9), ("2026-11-16", 8)], ids=["spring", "autumn", "usual"]
)
def test_the_night_in_which_clocks_change_is_an_hour_shorter_or_longer(day: str, night: float) -> None:
    end = local(f"{day}T22:00")
    start = local(f"{date.fromisoformat(day) - timedelta(days=1)}T22:00")
    assert hours(by_daily_times(start, end, ROME, SHIFTS)) == {EARLY: 8, LATE: 8, NIGHT: night}


def test_a_skipped_hour_has_no_slice_and_a_repeated_one_lasts_two_hours() -> None:
    every_hour = [time(hour) for hour in range(24)]
    spring = hours(by_daily_times(local("2026-03-29T00:00"), local("2026-03-30T00:00"), ROME, every_hour))
    assert spring == {hour: 1 for hour in range(24) if hour != 2}
    autumn = hours(by_daily_times(local("2026-10-25T00:00"), local("2026-10-26T00:00"), ROME, every_hour))
    assert autumn == {hour: 2 if hour == 2 else 1 for hour in range(24)}


def test_a_shift_that_would_start_in_a_skipped_hour_takes_no_time_from_the_one_after() -> None:
    found = by_daily_times(local("2026-03-29T00:00"), local("2026-03-30T00:00"), ROME, [time(2, 30), time(3)])
    assert told(found, ROME) == [("29 00:00", "29 03:00", 1), ("29 03:00", "30 00:00", 1)]


def test_days_are_the_plants_days() -> None:
    found = by_days(local("2026-10-24T12:00"), local("2026-10-26T06:00"), ROME)
    assert [date.fromordinal(group).day for group in found.groups.tolist()] == [24, 25, 26]
    assert list(hours(found).values()) == [12, 25, 6]


def test_hours_of_a_chart_begin_at_the_plants_full_hour_and_are_all_as_long() -> None:
    found = by_hours(local("2026-11-16T05:20", KOLKATA), local("2026-11-16T08:00", KOLKATA), KOLKATA)
    assert [row[:2] for row in told(found, KOLKATA)] == [
        ("16 05:20", "16 06:00"),
        ("16 06:00", "16 07:00"),
        ("16 07:00", "16 08:00"),
    ]
    autumn = by_hours(local("2026-10-25T00:00"), local("2026-10-26T00:00"), ROME)
    assert set((autumn.ends - autumn.starts).tolist()) == {3_600_000_000}
    assert len(autumn.starts) == 25


moments = st.datetimes(datetime(2000, 1, 3), datetime(2099, 12, 1), timezones=st.just(UTC))  # noqa: DTZ001 - hypothesis wants them bare
zones = st.sampled_from(
    ["Europe/Rome", "UTC", "America/St_Johns", "Asia/Kolkata", "Pacific/Apia", "Australia/Lord_Howe"]
)


@given(moments, st.timedeltas(timedelta(seconds=1), timedelta(days=9)), zones)
def test_slices_cover_a_span_without_gap_or_overlap(start: datetime, length: timedelta, name: str) -> None:
    end, zone = start + length, ZoneInfo(name)
    for found in (
        by_days(start, end, zone),
        by_hours(start, end, zone),
        by_daily_times(start, end, zone, SHIFTS),
        by_daily_times(start, end, zone, [time(2, 30)]),
    ):
        assert (found.starts[0], found.ends[-1]) == (to_us(start), to_us(end))
        assert (found.starts[1:] == found.ends[:-1]).all()
        assert (found.starts < found.ends).all()


spans = st.lists(st.integers(0, 60), max_size=8, unique=True).map(sorted)


@given(spans, spans)
def test_slices_within_others_are_the_moments_that_lie_in_both(one: list[int], other: list[int]) -> None:
    def slices(edges: list[int]) -> TimeBins:
        pairs = np.array(edges[: len(edges) // 2 * 2], dtype=np.int64).reshape(-1, 2)
        return TimeBins(pairs[:, 0], pairs[:, 1], np.arange(len(pairs)))

    mine, others, every = slices(one), slices(other), np.arange(62)
    expected = np.where(others.bin_index(every) >= 0, mine.groups_at(every), -1)
    assert mine.within(others).groups_at(every).tolist() == expected.tolist()
