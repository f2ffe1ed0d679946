"""Reasons: what is named, what is gathered, and how it is said."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forecasting.forecaster import ObservedSeries
from forecasting.series import AlarmSeries
from forecasting.window import WindowSpec
from service.forecasts.explanation_text import Contribution, ExplanationRenderer, top_k_with_rest
from service.humanize import ago, duration, plural, times
from service.machines.catalogue import CatalogueEntry
from wire.enums import PartKind

AT = datetime(2026, 11, 16, 8, 7, tzinfo=UTC)
HOUR = timedelta(hours=1)
DAY = timedelta(days=1)


def pulls(*contributions: float) -> list[Contribution]:
    return [Contribution(PartKind.ALARM, code, one) for code, one in enumerate(contributions, start=1)]


@given(contributions=st.lists(st.floats(-20, 20), max_size=60), keep=st.integers(1, 70), usual=st.floats(-30, 30))
def test_rounded_parts_sum_to_the_rounded_difference_however_many_are_named(
    contributions: list[float], keep: int, usual: float
) -> None:
    whole = round(usual + sum(contributions), 4) - round(usual, 4)
    parts = top_k_with_rest(pulls(*contributions), keep=keep, whole=whole)
    if any(contributions):
        assert sum(part.contribution for part in parts) == pytest.approx(whole, abs=1e-6)
    named = [part for part in parts if part.kind is not PartKind.OTHERS]
    assert len(named) == min(keep, sum(one != 0 for one in contributions))
    assert sum(part.number for part in parts) == sum(one != 0 for one in contributions)


def test_the_largest_come_first_whichever_way_they_pull_and_the_others_last() -> None:
    parts = top_k_with_rest(pulls(0.1, -3.0, 0.0, 2.0, 0.25), keep=2, whole=-0.65)
    assert [(part.code, part.contribution) for part in parts] == [(2, -3.0), (4, 2.0), (None, 0.35)]
    assert parts[-1].number == 2


def test_nothing_that_moved_is_no_part() -> None:
    assert top_k_with_rest(pulls(0.0, 0.0), keep=6, whole=0.0) == []


@pytest.mark.parametrize(
    ("span", "words"),
    [
        (timedelta(seconds=59), "just now"),
        (timedelta(minutes=1), "1 minute ago"),
        (timedelta(minutes=20, seconds=20), "20 minutes ago"),
        (timedelta(minutes=89), "89 minutes ago"),
        (2 * HOUR, "2 hours ago"),
        (35 * HOUR, "35 hours ago"),
        (3 * DAY, "3 days ago"),
    ],
)
def test_how_long_ago_is_told_in_the_unit_that_suits(span: timedelta, words: str) -> None:
    assert ago(span) == words


def test_numbers_are_told_as_people_say_them() -> None:
    assert [plural(number, "alarm") for number in (0, 1, 7)] == ["no alarm", "1 alarm", "7 alarms"]
    assert [times(number) for number in (1, 2, 3)] == ["once", "twice", "3 times"]
    assert duration(WindowSpec().lookback) == "29 hours"


def witness(
    *alarms: tuple[datetime, int], usual: tuple[datetime, ...] = (AT - DAY,), since: int = 60
) -> ExplanationRenderer:
    return ExplanationRenderer(
        record=ObservedSeries(AlarmSeries.from_alarms(alarms), AT - since * DAY),
        at=AT,
        spec=WindowSpec(),
        reach=30 * DAY,
        usual=usual,
        shares={137: (0.5, 0.25), 26: (0.0, 0.25)},
        entries={137: CatalogueEntry(137, "Film splice", "low", target=False)},
    )


def test_a_past_alarm_is_told_with_how_often_and_how_long_ago() -> None:
    often = [(AT - hours * HOUR, 137) for hours in (1, 2, 3, 28, 29)]
    part = witness(*often).render(Contribution(PartKind.ALARM, 137, 0.5))
    assert (
        part.sentence
        == "137 Film splice occurred 4 times, last 60 minutes ago: a larger share of the alarms than usual."
    )
    assert (part.seen, part.last_seen, part.share, part.baseline_share) == (4, AT - HOUR, 0.5, 0.25)
    new = witness(*often, usual=()).render(Contribution(PartKind.ALARM, 137, 0.5))
    assert new.sentence == "137 Film splice occurred 4 times, last 60 minutes ago."


def test_an_alarm_that_stayed_away_is_told_and_when_it_was_last_seen() -> None:
    part = witness((AT - 3 * DAY, 26)).render(Contribution(PartKind.ALARM, 26, -0.5))
    assert part.sentence == "Alarm 26 did not occur in the last 29 hours, unlike usual."
    assert (part.seen, part.last_seen) == (0, AT - 3 * DAY)


def test_recency_is_told_as_far_back_as_the_model_reads() -> None:
    pull = Contribution(PartKind.RECENCY, 137, 1.0)
    assert witness((AT - 3 * DAY, 137)).render(pull).sentence == "137 Film splice last occurred 3 days ago."
    long_ago = witness((AT - 31 * DAY, 137)).render(pull)
    assert long_ago.sentence == "137 Film splice has not occurred in the last 30 days."
    assert long_ago.last_seen == AT - 31 * DAY


def test_habit_is_told_by_the_days_that_were_heard() -> None:
    came = [(AT - DAY, 137), (AT - 2 * DAY + 8 * HOUR, 137), (AT - 3 * DAY + 7 * HOUR, 137)]
    pull = Contribution(PartKind.HABIT, 137, 1.0)
    told = witness(*came).render(pull).sentence
    assert told == "137 Film splice occurred in this period of 8 hours on 2 of the last 7 days."
    assert "on 2 of the last 3 days" in witness(*came, since=3).render(pull).sentence
    assert "observed for less than a day" in witness(*came, since=0).render(pull).sentence


def test_the_machines_condition_is_told_beside_the_usual() -> None:
    alarms = [(AT - 2 * HOUR, 137), (AT - HOUR, 26), (AT - 40 * HOUR, 26)]
    part = witness(*alarms).render(Contribution(PartKind.CONDITION, None, 0.2))
    assert part.sentence == "The machine raised 2 alarms in the last 29 hours, usually 1; last 60 minutes ago."
    assert (part.seen, part.last_seen, part.code) == (2, AT - HOUR, None)
    never = witness(usual=()).render(Contribution(PartKind.CONDITION, None, 0.2))
    assert never.sentence == "The machine raised no alarm in the last 29 hours."
