"""When a likely alarm is news: by examples, and by every walk of a probability that hypothesis can think of."""

from dataclasses import replace
from datetime import datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.notifications.models import (
    NO_TRANSITION,
    HysteresisPolicy,
    Notification,
    NotificationTransition,
    Observation,
    next_transition,
)
from tests.service.conftest import FILLER, NOW
from wire.enums import NotificationEnd
from wire.forecasts import LikelyAlarm

POLICY = HysteresisPolicy(release=0.8, cooldown=timedelta(hours=1))
MINUTE, HOUR = timedelta(minutes=1), timedelta(hours=1)
THRESHOLD = 0.5
END = NotificationEnd


def alarm(probability: float) -> LikelyAlarm:
    return LikelyAlarm(
        code=139,
        text="Film torn",
        severity="high",
        probability=probability,
        base_rate=None,
        threshold=THRESHOLD,
        expected=probability >= THRESHOLD,
    )


def sight(probability: float | None, at: datetime = NOW, *, trusted: bool = True) -> Observation:
    return Observation(at, None if probability is None else alarm(probability), trusted, THRESHOLD)


def opened(at: datetime = NOW, number: int = 1) -> Notification:
    return Notification(number, FILLER, 139, "Film torn", "high", at, at + 8 * HOUR, 0.6, THRESHOLD, "v1", at)


def closed(end: NotificationEnd, at: datetime = NOW) -> Notification:
    return replace(opened(), closed_at=at, ended=end, rearmed_at=None if end is END.OCCURRED else at)


def test_a_likely_alarm_is_news_once() -> None:
    assert next_transition(sight(0.5), None, POLICY) == NotificationTransition(opens=True)
    assert next_transition(sight(0.9), opened(), POLICY) == NO_TRANSITION
    assert next_transition(sight(0.49), None, POLICY) == NO_TRANSITION


def test_between_release_and_threshold_nothing_happens() -> None:
    assert next_transition(sight(0.41), opened(), POLICY) == NO_TRANSITION
    assert next_transition(sight(0.41), None, POLICY) == NO_TRANSITION
    assert next_transition(sight(0.39), opened(), POLICY) == NotificationTransition(closes=END.CLEARED)


def test_an_alarm_that_came_is_news_again_only_after_it_was_unlikely() -> None:
    assert next_transition(sight(0.9)._replace(occurred=True), opened(), POLICY) == NotificationTransition(
        closes=END.OCCURRED
    )
    came = closed(END.OCCURRED)
    assert next_transition(sight(0.9, NOW + 100 * HOUR), came, POLICY) == NO_TRANSITION, (
        "it has been likely all the time"
    )
    assert next_transition(sight(0.1, NOW + HOUR), came, POLICY) == NotificationTransition(rearms=True)
    rearmed = replace(came, rearmed_at=NOW + HOUR)
    assert next_transition(sight(0.9, NOW + 2 * HOUR - MINUTE), rearmed, POLICY) == NO_TRANSITION
    assert next_transition(sight(0.9, NOW + 2 * HOUR), rearmed, POLICY) == NotificationTransition(opens=True)


@pytest.mark.parametrize("hush", [END.SHELVED, END.MAINTENANCE])
def test_what_is_hushed_is_not_told_and_is_news_at_once_when_that_is_over(hush: NotificationEnd) -> None:
    assert next_transition(sight(0.9)._replace(suppression=hush), None, POLICY) == NO_TRANSITION
    assert next_transition(sight(0.9)._replace(suppression=hush), opened(), POLICY) == NotificationTransition(
        closes=hush
    )
    assert next_transition(sight(0.9, NOW + MINUTE), closed(hush), POLICY) == NotificationTransition(opens=True)


def test_what_somebody_knows_is_not_told_again() -> None:
    known = sight(0.9)._replace(acknowledged=True)
    assert next_transition(known, None, POLICY) == NO_TRANSITION
    assert next_transition(known, closed(END.SHELVED), POLICY) == NO_TRANSITION
    assert next_transition(known, opened(), POLICY) == NO_TRANSITION, "the notice itself stands on"


def test_a_forecast_that_is_not_to_be_trusted_opens_nothing_and_ends_nothing_before_the_horizon() -> None:
    assert next_transition(sight(0.9, trusted=False), None, POLICY) == NO_TRANSITION
    assert next_transition(sight(0.0, NOW + 8 * HOUR - MINUTE, trusted=False), opened(), POLICY) == NO_TRANSITION
    lapsed = next_transition(sight(0.9, NOW + 8 * HOUR, trusted=False), opened(), POLICY)
    assert lapsed == NotificationTransition(closes=END.EXPIRED)
    assert next_transition(sight(0.0, trusted=False), closed(END.OCCURRED), POLICY) == NO_TRANSITION


def test_what_is_no_longer_forecast_is_withdrawn() -> None:
    assert next_transition(sight(None), opened(), POLICY) == NotificationTransition(closes=END.WITHDRAWN)
    assert next_transition(sight(None), closed(END.OCCURRED), POLICY) == NotificationTransition(rearms=True)


@given(st.lists(st.floats(POLICY.release * THRESHOLD, 1.0), min_size=1, max_size=60))
def test_a_probability_that_wobbles_around_its_threshold_gives_one_notification_at_most(walk: list[float]) -> None:
    tale = told(walk)
    assert len(tale) == any(probability >= THRESHOLD for probability in walk)


Step = tuple[float, int, bool, bool, NotificationEnd | None, bool]
STEPS: st.SearchStrategy[list[Step]] = st.lists(
    st.tuples(
        st.floats(0.0, 1.0),
        st.integers(1, 200),
        st.booleans(),
        st.booleans(),
        st.sampled_from([None, None, None, END.SHELVED, END.MAINTENANCE]),
        st.booleans(),
    ),
    max_size=60,
)


@given(STEPS)
def test_whatever_happens_notification_follow_each_other_and_keep_their_distance(steps: list[Step]) -> None:
    last, at, lowest = None, NOW, 1.0
    for probability, minutes, trusted, came, hush, known in steps:
        at += minutes * MINUTE
        seen = Observation(at, alarm(probability), trusted, THRESHOLD, came, hush, known)
        verdict = next_transition(seen, last, POLICY)
        if trusted:
            lowest = min(lowest, probability)
        if verdict.opens:
            assert trusted
            assert not hush
            assert not known
            assert probability >= THRESHOLD
            assert last is None or not last.is_open, "never two open for one alarm"
            if last and last.ended in {END.OCCURRED, END.CLEARED}:
                assert lowest < POLICY.release * THRESHOLD, "no repeat before it was clearly gone"
                assert last.rearmed_at is not None
                assert at >= last.rearmed_at + POLICY.cooldown
            last, lowest = opened(at), 1.0
        elif last:
            if verdict.closes:
                assert last.is_open, "closed once"
                rearmed = None if verdict.closes is END.OCCURRED else at
                last = replace(last, closed_at=at, ended=verdict.closes, rearmed_at=rearmed)
            if verdict.rearms:
                assert last.rearmed_at is None, "rearmed once"
                last = replace(last, rearmed_at=at)
        else:
            assert verdict == NO_TRANSITION


def told(walk: list[float]) -> list[Notification]:
    """Return the notices of a walk of probabilities, a quarter of an hour a step."""
    notices: list[Notification] = []
    for step, probability in enumerate(walk):
        at = NOW + step * 15 * MINUTE
        last = notices[-1] if notices else None
        verdict = next_transition(sight(probability, at), last, POLICY)
        if verdict.opens:
            notices.append(opened(at, len(notices) + 1))
        elif last and verdict.closes:
            notices[-1] = replace(last, closed_at=at, ended=verdict.closes, rearmed_at=at)
    return notices
