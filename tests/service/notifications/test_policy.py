"""Which likely alarms a policy notifies of, how it reads, and which policies are refused."""

from datetime import UTC, datetime, time
from math import inf
from zoneinfo import ZoneInfo

import pytest

from service.errors import InputRejected
from service.machines.catalogue import CatalogueEntry
from service.notifications.policy import (
    DEFAULT_POLICY,
    check_policy,
    notification_threshold,
    policy_text,
    shift_start,
)
from wire.enums import Severity
from wire.rest.policies import NotificationPolicy, SeverityRule

FILM, DOOR = (
    CatalogueEntry(139, "Film torn", "high", target=True),
    CatalogueEntry(26, "Door open", "low", target=True),
)
LIFTED = SeverityRule(probability=0.3, lift=2)


@pytest.mark.parametrize(
    ("policy", "severity", "base_rate", "threshold"),
    [
        (DEFAULT_POLICY, "high", 0.9, 0.5),
        (DEFAULT_POLICY, "medium", None, 0.6),
        (DEFAULT_POLICY, "low", 0.0, 0.6),
        (DEFAULT_POLICY, "odd", 0.0, 0.6),
        (NotificationPolicy(low=LIFTED), "low", 0.2, 0.4),
        (NotificationPolicy(low=LIFTED), "low", 0.1, 0.3),
        (NotificationPolicy(low=LIFTED), "low", None, 0.3),
        (NotificationPolicy(exclude_severities=(Severity.LOW,)), "low", 0.1, inf),
        (NotificationPolicy(exclude_codes=(139,)), "high", 0.1, inf),
    ],
)
def test_an_alarm_is_notified_of_from_its_probability_and_lift_on(
    policy: NotificationPolicy, severity: str, base_rate: float | None, threshold: float
) -> None:
    assert notification_threshold(policy, 139, severity, base_rate) == pytest.approx(threshold)


def test_a_policy_reads_as_one_sentence() -> None:
    assert policy_text(DEFAULT_POLICY) == "High from 50 %; medium and low from 60 %."
    strict = NotificationPolicy(
        high=LIFTED, exclude_severities=(Severity.LOW,), exclude_codes=(26, 29), per_shift=5
    )
    assert policy_text(strict) == (
        "High from 30 % and 2 times the usual rate; medium from 60 %; without low, codes 26, 29; "
        "at most 5 per machine and shift."
    )


@pytest.mark.parametrize(
    ("policy", "least", "reason"),
    [
        (NotificationPolicy(exclude_severities=tuple(Severity)), Severity.LOW, "every severity"),
        (NotificationPolicy(exclude_severities=(Severity.HIGH,)), Severity.HIGH, "every severity"),
        (NotificationPolicy(per_shift=0), Severity.LOW, "0 per shift"),
        (NotificationPolicy(exclude_codes=(26, 139)), Severity.LOW, "every forecast alarm"),
        (NotificationPolicy(exclude_codes=(139,)), Severity.MEDIUM, "every forecast alarm"),
    ],
)
def test_a_policy_that_can_never_notify_is_refused(
    policy: NotificationPolicy, least: Severity, reason: str
) -> None:
    with pytest.raises(InputRejected, match=f"never notifies: it .*{reason}"):
        check_policy(policy, [FILM, DOOR], least)


def test_a_policy_that_leaves_one_alarm_is_accepted() -> None:
    assert check_policy(NotificationPolicy(exclude_codes=(26,), per_shift=1), [FILM, DOOR])
    assert check_policy(DEFAULT_POLICY, [])


@pytest.mark.parametrize(
    ("at", "start"),
    [
        ("2026-11-16T05:30", "2026-11-16T05:00"),
        ("2026-11-16T04:59", "2026-11-15T21:00"),
        ("2026-11-16T21:00", "2026-11-16T21:00"),
    ],
)
def test_a_shift_starts_in_the_plants_time(at: str, start: str) -> None:
    moment = datetime.fromisoformat(at).replace(tzinfo=UTC)
    found = shift_start(moment, ZoneInfo("Europe/Rome"), (time(6), time(14), time(22)))
    assert found == datetime.fromisoformat(start).replace(tzinfo=UTC)
