"""Which likely alarms are worth a notification: rules by severity, and a limit per machine and shift."""

from collections.abc import Iterable, Sequence
from datetime import datetime, time, timedelta
from itertools import groupby
from math import inf
from zoneinfo import ZoneInfo

from service.errors import InputRejected
from service.machines.catalogue import CatalogueEntry
from wire.enums import Severity
from wire.rest.policies import NotificationPolicy, SeverityRule

DEFAULT_POLICY = NotificationPolicy()


def rule_of(policy: NotificationPolicy, severity: str) -> SeverityRule | None:
    """Return the rule of a severity, or None if it is left out."""
    known = Severity(severity) if severity in set(Severity) else Severity.MEDIUM
    rules = {Severity.LOW: policy.low, Severity.MEDIUM: policy.medium, Severity.HIGH: policy.high}
    return None if known in policy.exclude_severities else rules[known]


def notification_threshold(policy: NotificationPolicy, code: int, severity: str, base_rate: float | None) -> float:
    """Return the probability from which an alarm opens a notification; infinite if it is left out."""
    rule = rule_of(policy, severity)
    if rule is None or code in policy.exclude_codes:
        return inf
    return max(rule.probability, round(rule.lift * (base_rate or 0.0), 4))


def check_policy(
    policy: NotificationPolicy, catalogue: Iterable[CatalogueEntry], least: Severity = Severity.LOW
) -> NotificationPolicy:
    """Return the policy, or raise :class:`InputRejected` if it can never open a notification.

    ``least`` is the minimum severity of the subscription.
    """
    order = list(Severity)
    left = [one for one in order[order.index(least) :] if one not in policy.exclude_severities]
    if not left:
        raise InputRejected("This policy never notifies: it leaves out every severity. Keep at least one.")
    if policy.per_shift == 0:
        raise InputRejected("This policy never notifies: it allows 0 per shift. Allow at least 1, or any.")
    targets = [entry for entry in catalogue if entry.target]
    if targets and not any(e.severity in left and e.code not in policy.exclude_codes for e in targets):
        raise InputRejected("This policy never notifies: it leaves out every forecast alarm. Keep at least one.")
    return policy


def policy_text(policy: NotificationPolicy) -> str:
    """Return the policy in one sentence."""
    rules = [(one, rule) for one in reversed(Severity) if (rule := rule_of(policy, one))]
    parts = [
        f"{' and '.join(severity for severity, _ in group)} {_rule_text(rule)}"
        for rule, group in groupby(rules, key=lambda pair: pair[1])
    ]
    without: list[str] = list(policy.exclude_severities)
    if policy.exclude_codes:
        codes = ", ".join(map(str, policy.exclude_codes))
        without.append(f"{'code' if len(policy.exclude_codes) == 1 else 'codes'} {codes}")
    if without:
        parts.append(f"without {', '.join(without)}")
    if policy.per_shift is not None:
        parts.append(f"at most {policy.per_shift} per machine and shift")
    text = "; ".join(parts)
    return f"{text[:1].upper()}{text[1:]}."


def _rule_text(rule: SeverityRule) -> str:
    lift = f" and {rule.lift:g} times the usual rate" if rule.lift > 1 else ""
    return f"from {round(100 * rule.probability, 2):g} %{lift}"


def shift_start(at: datetime, zone: ZoneInfo, starts: Sequence[time]) -> datetime:
    """Return when the shift under way at a moment began; ``starts`` are local times of the day."""
    local = at.astimezone(zone)
    days = (local.date() - timedelta(days=1), local.date())
    begun = [moment for day in days for one in starts if (moment := datetime.combine(day, one, tzinfo=zone)) <= at]
    return max(begun) if begun else at - timedelta(days=1)
