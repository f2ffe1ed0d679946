"""Figures of stored alarms: chosen by place, span and shift, in lines that add up."""

from collections.abc import Collection
from datetime import UTC, date, datetime, time, timedelta
from typing import Any

import pytest

from service.alarm_metrics.models import ExcludedSpan
from service.alarm_metrics.service import AlarmMetrics, AlarmMetricsQuery, AlarmMetricsService
from service.app.service import Service
from service.app.stores import Stores
from service.errors import InputRejected, NotFound, Unavailable
from service.machines.models import Machine
from tests.service.conftest import NOW, connect_agent, enrolled, raise_alarms
from wire.clock import PlantClock
from wire.enums import AlarmMetricsGrouping, BucketLength, RateBand
from wire.identity import MachineId
from wire.timestamps import to_us

HOUR, MINUTE, SECOND = timedelta(hours=1), timedelta(minutes=1), timedelta(seconds=1)
DAY = 24 * HOUR
SHIFTS = {"early": time(6), "late": time(14), "night": time(22)}
TOKYO = MachineId("tokyo", "wrapper-1")


@pytest.fixture
def desk(service: Service, stores: Stores) -> AlarmMetricsService:
    return AlarmMetricsService(stores.machines, stores.events, stores.catalogue, service.clock, SHIFTS)


def lines(found: AlarmMetrics) -> dict[Any, int]:
    """The alarms of each line, by the part of its key that tells it apart."""
    return {
        next(
            part for part in (key.machine, key.site, key.shift, key.code, key.day, key.hour) if part is not None
        ): tally.alarms
        for key, tally in found.rows
    }


def steady(since: datetime, until: datetime, step: timedelta, code: int = 139) -> list[tuple[datetime, int]]:
    return [(since + n * step, code) for n in range((until - since) // step)]


def test_a_quiet_week_is_acceptable_and_its_rate_is_over_the_time_the_machine_was_heard(
    desk: AlarmMetricsService, stores: Stores, filler: Machine
) -> None:
    raise_alarms(stores, filler, *steady(NOW - 2 * DAY, NOW, 15 * MINUTE))
    connect_agent(stores, filler)
    total = desk.compute(AlarmMetricsQuery()).total
    assert (total.alarms, total.machines, total.monitored_us) == (192, 1, 2 * DAY // timedelta(microseconds=1))
    assert (total.alarms_per_day, total.band, total.peak, total.floods) == (96, RateBand.ACCEPTABLE, 1, 0)


def test_a_machine_that_went_offline_is_not_taken_for_a_quiet_one(
    desk: AlarmMetricsService, stores: Stores, filler: Machine
) -> None:
    raise_alarms(stores, filler, *steady(NOW - 5 * DAY, NOW - 4 * DAY, 4 * MINUTE))
    connect_agent(stores, filler, at=NOW - 4 * DAY, online=False)
    raise_alarms(stores, filler, (NOW - 30 * DAY, 5))
    connect_agent(stores, filler, at=NOW - 4 * DAY, online=False)
    total = desk.compute(AlarmMetricsQuery(since=NOW - 5 * DAY)).total
    assert (total.alarms_per_day, total.band) == (360, RateBand.EXCESSIVE)


def test_a_machine_that_was_never_heard_has_no_rate(desk: AlarmMetricsService, filler: Machine) -> None:
    found = desk.compute(AlarmMetricsQuery())
    assert (found.machines, found.total.alarms, found.total.band, found.total.flood_share) == (1, 0, None, None)
    assert lines(found) == {filler.id.machine: 0}
    assert (found.codes, found.floods, found.chatter, found.standing) == ([], [], [], [])


@pytest.mark.parametrize("by", AlarmMetricsGrouping)
@pytest.mark.parametrize("shift", [None, "early", "night"])
def test_whatever_the_lines_are_by_their_alarms_add_up_to_the_same_total(
    desk: AlarmMetricsService, stores: Stores, filler: Machine, by: AlarmMetricsGrouping, shift: str | None
) -> None:
    wrapper = enrolled(stores.enrolments, TOKYO, time_zone="Asia/Tokyo")
    raise_alarms(stores, filler, *steady(NOW - 5 * DAY, NOW, 17 * MINUTE), *steady(NOW - DAY, NOW, HOUR, 26))
    raise_alarms(stores, wrapper, *steady(NOW - 3 * DAY, NOW, 23 * MINUTE))
    found = desk.compute(AlarmMetricsQuery(by=by, shift=shift))
    total = desk.compute(AlarmMetricsQuery(shift=shift)).total
    assert found.total == total
    assert sum(tally.alarms for _, tally in found.rows) == total.alarms > 0
    assert sum(bucket.alarms for bucket in found.rate) == total.alarms
    assert sum(bucket.monitored_us for bucket in found.rate) == total.monitored_us
    if by is not AlarmMetricsGrouping.CODE:
        assert sum(tally.monitored_us for _, tally in found.rows) == total.monitored_us


def test_lines_are_by_site_machine_code_day_and_hour(
    desk: AlarmMetricsService, stores: Stores, filler: Machine
) -> None:
    wrapper = enrolled(stores.enrolments, TOKYO, time_zone="Asia/Tokyo")
    at = datetime(2026, 11, 15, 16, 30, tzinfo=UTC)  # half past five in Padova, half past one on the 16th in Tokyo
    raise_alarms(stores, filler, (at, 139), (at + MINUTE, 139), (at + 2 * MINUTE, 26))
    raise_alarms(stores, wrapper, (at, 139))
    by = {by: desk.compute(AlarmMetricsQuery(by=by)) for by in AlarmMetricsGrouping}
    assert lines(by[AlarmMetricsGrouping.SITE]) == {"padova": 3, "tokyo": 1}
    assert lines(by[AlarmMetricsGrouping.MACHINE]) == {"filler-1": 3, "wrapper-1": 1}
    assert list(lines(by[AlarmMetricsGrouping.CODE]).items()) == [(139, 3), (26, 1)]
    days = lines(by[AlarmMetricsGrouping.DAY])
    assert (days[date(2026, 11, 15)], days[date(2026, 11, 16)]) == (3, 1)
    assert {hour: count for hour, count in lines(by[AlarmMetricsGrouping.HOUR]).items() if count} == {1: 1, 17: 3}
    assert lines(by[AlarmMetricsGrouping.SHIFT]) == {"early": 0, "late": 3, "night": 1}
    assert list(lines(by[AlarmMetricsGrouping.HOUR])) == list(range(24))
    codes = by[AlarmMetricsGrouping.SITE].codes
    assert [(one.code, one.alarms, one.share, one.machines) for one in codes] == [
        (139, 3, 0.75, 2),
        (26, 1, 0.25, 1),
    ]


def test_figures_can_be_narrowed_to_a_site_a_machine_a_span_and_a_shift(
    desk: AlarmMetricsService, stores: Stores, filler: Machine
) -> None:
    wrapper = enrolled(stores.enrolments, TOKYO)
    raise_alarms(stores, filler, (NOW - 3 * HOUR, 1), (NOW - 2 * HOUR, 1))  # 06:07 and 07:07 in Rome
    raise_alarms(stores, wrapper, (NOW - 3 * HOUR, 1))

    def alarms(**query: Any) -> int:
        return desk.compute(AlarmMetricsQuery(**query)).total.alarms

    assert (alarms(), alarms(site="padova"), alarms(site="tokyo", machine="wrapper-1")) == (3, 2, 1)
    assert alarms(since=NOW - 3 * HOUR, until=NOW - 2 * HOUR) == 2, "from since on, before until"
    assert (alarms(shift="early"), alarms(shift="night")) == (2, 1), "wrapper-1 goes by UTC"


@pytest.mark.parametrize(
    ("until", "length"),
    [("2026-10-25T12:00", 9 * HOUR), ("2026-03-29T12:00", 7 * HOUR)],
    ids=["autumn", "spring"],
)
def test_a_rate_in_the_night_when_clocks_change_is_over_the_hours_that_it_had(
    stores: Stores, filler: Machine, until: str, length: timedelta
) -> None:
    end = datetime.fromisoformat(until).replace(tzinfo=UTC)
    desk = AlarmMetricsService(
        stores.machines, stores.events, stores.catalogue, PlantClock(plant_origin=end), SHIFTS
    )
    raise_alarms(stores, filler, *steady(end - 30 * HOUR, end, 10 * MINUTE), (end, 1))
    found = desk.compute(
        AlarmMetricsQuery(by=AlarmMetricsGrouping.SHIFT, since=end - 24 * HOUR, until=end, shift="night")
    )
    ((key, night),) = found.rows
    assert (key.shift, night.monitored_us) == ("night", length // timedelta(microseconds=1))
    assert night.alarms == length // (10 * MINUTE)
    assert night.alarms_per_day == 144


def test_a_flood_across_two_shifts_counts_in_both_and_once_in_the_total(
    desk: AlarmMetricsService, stores: Stores, filler: Machine
) -> None:
    change = datetime(2026, 11, 15, 13, 0, tzinfo=UTC)  # two in the afternoon in Padova
    raise_alarms(stores, filler, *steady(change - 5 * MINUTE, change + 5 * MINUTE, 20 * SECOND))
    found = desk.compute(AlarmMetricsQuery(by=AlarmMetricsGrouping.SHIFT))
    assert {key.shift: tally.floods for key, tally in found.rows} == {"early": 1, "late": 1, "night": 0}
    assert found.total.floods == 1
    (flood,) = found.floods
    assert (flood.machine, flood.alarms, flood.top_code) == (filler.id.machine, 30, 139)
    assert flood.end is not None
    assert desk.compute(AlarmMetricsQuery(shift="night")).floods == []


def test_a_flood_that_goes_on_has_no_end_yet(desk: AlarmMetricsService, stores: Stores, filler: Machine) -> None:
    raise_alarms(stores, filler, *steady(NOW - 5 * MINUTE, NOW, 20 * SECOND))
    (flood,) = desk.compute(AlarmMetricsQuery()).floods
    assert flood.end is None


def test_what_began_before_the_span_is_known_in_it(
    desk: AlarmMetricsService, stores: Stores, filler: Machine
) -> None:
    raise_alarms(stores, filler, *steady(NOW - 26 * HOUR, NOW, 30 * MINUTE, 8))
    raise_alarms(stores, filler, *steady(NOW - 66 * MINUTE, NOW - 58 * MINUTE, 30 * SECOND, 26))
    found = desk.compute(AlarmMetricsQuery(since=NOW - HOUR))
    (standing,) = found.standing
    assert (standing.code, standing.since) == (8, NOW - 26 * HOUR)
    assert (found.total.alarms, found.total.standing, found.total.floods) == (2 + 4, 1, 1)


def test_chatter_is_told_by_machine_and_code(desk: AlarmMetricsService, stores: Stores, filler: Machine) -> None:
    for start in (NOW - 5 * HOUR, NOW - 3 * HOUR):
        raise_alarms(stores, filler, *steady(start, start + 80 * SECOND, 20 * SECOND, 26))
    raise_alarms(stores, filler, *steady(NOW - 2 * HOUR, NOW, 30 * SECOND, 8)[::2])
    (chatter,) = desk.compute(AlarmMetricsQuery()).chatter
    assert (chatter.code, chatter.bursts, chatter.alarms) == (26, 2, 8)
    assert chatter.last_at == NOW - 3 * HOUR + 60 * SECOND
    assert desk.compute(AlarmMetricsQuery()).total.chattering == 8
    assert desk.compute(AlarmMetricsQuery(since=NOW - 4 * HOUR)).chatter[0].bursts == 1


def test_a_week_is_charted_in_hours_and_more_in_days_of_the_common_time_zone(
    desk: AlarmMetricsService, stores: Stores, filler: Machine
) -> None:
    raise_alarms(stores, filler, (NOW - HOUR, 1))
    week = desk.compute(AlarmMetricsQuery())
    assert (week.bucket, week.time_zone, len(week.rate)) == (BucketLength.HOUR, "Europe/Rome", 169)
    month = desk.compute(AlarmMetricsQuery(since=NOW - 30 * DAY))
    assert (month.bucket, len(month.rate)) == (BucketLength.DAY, 31)
    assert month.rate[1].start == datetime(2026, 10, 17, 22, tzinfo=UTC), "midnight in Rome, still in summer time"
    enrolled(stores.enrolments, TOKYO, time_zone="Asia/Tokyo")
    enrolled(stores.enrolments, MachineId("tokyo", "wrapper-2"), time_zone="Asia/Tokyo")
    assert desk.compute(AlarmMetricsQuery()).time_zone == "Asia/Tokyo", "of most machines"


def test_what_was_shelved_is_in_no_figure_and_is_counted(
    service: Service, stores: Stores, filler: Machine
) -> None:
    raise_alarms(
        stores, filler, *steady(NOW - 10 * MINUTE, NOW, 20 * SECOND, 26), (NOW - HOUR, 26), (NOW - HOUR, 1)
    )

    def shelved(since: datetime, until: datetime) -> Collection[ExcludedSpan]:
        assert since < NOW - 7 * DAY < until
        return [ExcludedSpan(filler.id, 26, to_us(NOW - 30 * MINUTE), to_us(NOW + HOUR))]

    desk = AlarmMetricsService(stores.machines, stores.events, stores.catalogue, service.clock, SHIFTS, shelved)
    found = desk.compute(AlarmMetricsQuery(by=AlarmMetricsGrouping.CODE))
    assert lines(found) == {1: 1, 26: 1}
    assert (found.excluded, found.total.alarms, found.total.floods, found.chatter) == (30, 2, 0, [])
    assert len(stores.events.series(filler, NOW - DAY, NOW)) == 32, "features never hear of it"


@pytest.mark.parametrize(
    ("query", "sentence"),
    [
        ({"since": NOW, "until": NOW}, "since must be before until."),
        ({"since": NOW - 93 * DAY}, "Ask for at most 92 days at once."),
        ({"machine": "filler-1"}, "A machine is named together with its site; give site too."),
        ({"shift": "lunch"}, "Shift 'lunch' does not exist; the shifts are early, late, night."),
    ],
)
def test_a_wrong_question_is_answered_with_a_sentence(
    desk: AlarmMetricsService, query: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(InputRejected) as refused:
        desk.compute(AlarmMetricsQuery(**query))
    assert str(refused.value) == sentence


def test_a_place_that_is_unknown_is_not_found(desk: AlarmMetricsService) -> None:
    with pytest.raises(NotFound):
        desk.compute(AlarmMetricsQuery(site="atlantis"))
    with pytest.raises(NotFound):
        desk.compute(AlarmMetricsQuery(site="padova", machine="none"))


def test_of_a_machine_with_too_many_alarms_the_newest_are_counted_and_the_figures_say_so(
    service: Service, stores: Stores, filler: Machine
) -> None:
    raise_alarms(stores, filler, *steady(NOW - DAY, NOW, 15 * MINUTE))
    other = enrolled(stores.enrolments, TOKYO)
    raise_alarms(stores, other, *steady(NOW - DAY, NOW, 60 * MINUTE))
    desk = AlarmMetricsService(
        stores.machines, stores.events, stores.catalogue, service.clock, SHIFTS, max_read=40
    )
    found = desk.compute(AlarmMetricsQuery())
    assert (found.total.alarms, found.truncated) == (40 + 24, 1)
    assert (
        AlarmMetricsService(stores.machines, stores.events, stores.catalogue, service.clock, SHIFTS)
        .compute(AlarmMetricsQuery())
        .truncated
        == 0
    )


def test_figures_that_find_no_room_beside_others_are_asked_for_again(service: Service, stores: Stores) -> None:
    desk = AlarmMetricsService(
        stores.machines, stores.events, stores.catalogue, service.clock, SHIFTS, queue_timeout=0.01
    )
    with desk.slots, desk.slots, pytest.raises(Unavailable, match="Retry"):
        desk.compute(AlarmMetricsQuery())
    with desk.slots:
        assert desk.compute(AlarmMetricsQuery()).machines == 0
