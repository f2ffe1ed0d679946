"""Notifications that a forecaster would have sent, counted from probabilities and outcomes."""

import numpy as np

from service.scoring.notification_scores import (
    ANNOUNCED,
    ONSETS,
    RIGHT,
    SENT,
    cold_pairs,
    median_lead_minutes,
    notification_sums,
)

HOUR = 3_600_000_000
HORIZON = 8 * HOUR


def counted(probabilities: list[float], alarms: list[float]) -> tuple[dict[int, int], float | None]:
    """Return the counts of hourly forecasts, with alarms at these hours, and the median lead."""
    at = np.arange(len(probabilities), dtype=np.int64) * HOUR
    hours = at / HOUR
    occurred = np.array([[any(hour <= alarm < hour + 8 for alarm in alarms)] for hour in hours])
    sums = notification_sums(at, np.array(probabilities)[:, None], occurred, np.ones_like(occurred), HORIZON)
    return {name: int(sums[name, 0]) for name in (SENT, RIGHT, ONSETS, ANNOUNCED)}, median_lead_minutes(sums[:, 0])


def test_a_notification_opens_once_until_the_probability_was_clearly_below() -> None:
    counts, _ = counted([0.1, 0.6, 0.5, 0.7, 0.47, 0.59, 0.9], [])
    assert counts == {SENT: 2, RIGHT: 0, ONSETS: 0, ANNOUNCED: 0}


def test_an_onset_is_announced_by_a_notification_within_the_horizon_before_it() -> None:
    quiet = [0.1] * 24
    early = [*quiet[:13], 0.8, *quiet[14:]]
    assert counted(early, [20.5]) == ({SENT: 1, RIGHT: 1, ONSETS: 1, ANNOUNCED: 1}, 427.5)
    too_early = [*quiet[:12], 0.8, *quiet[13:]]
    assert counted(too_early, [20.5]) == ({SENT: 1, RIGHT: 0, ONSETS: 1, ANNOUNCED: 0}, None)
    late = [*quiet[:21], 0.8, *quiet[22:]]
    assert counted(late, [20.5]) == ({SENT: 1, RIGHT: 0, ONSETS: 1, ANNOUNCED: 0}, None)


def test_an_alarm_that_repeats_within_the_horizon_is_one_onset() -> None:
    assert counted([0.1] * 30, [10.5, 12.5, 19.5])[0][ONSETS] == 1
    assert counted([0.1] * 30, [10.5, 19.6])[0][ONSETS] == 2


def test_a_pair_is_cold_if_the_code_did_not_occur_in_the_horizon_before() -> None:
    at = np.array([0, 4, 8, 12, 17], dtype=np.int64) * HOUR
    occurred = np.array([[True], [False], [True], [True], [False]])
    assert cold_pairs(at, occurred, np.ones_like(occurred), HORIZON).ravel().tolist() == [
        False, False, False, True, False,
    ]  # fmt: skip
