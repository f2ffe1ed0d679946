"""Notification policies: which likely alarms are worth a notification."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field
from pydantic.config import JsonDict

from wire.enums import Severity
from wire.events import Code
from wire.forecasts import Share
from wire.identity import Identifier
from wire.rest.texts import PrintableText

_POLICY: JsonDict = {
    "low": {"probability": 0.6, "lift": 0.0},
    "medium": {"probability": 0.6, "lift": 0.0},
    "high": {"probability": 0.5, "lift": 0.0},
    "exclude_severities": ["low"],
    "exclude_codes": [26],
    "per_shift": 5,
}
_TEXT = "High from 50 %; medium from 60 %; without low, code 26; at most 5 per machine and shift."


class SeverityRule(BaseModel):
    """From when on an alarm of one severity is worth a notification."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    probability: Share = Field(default=0.6, description="Smallest probability.")
    lift: Annotated[float, Field(ge=0, le=100)] = Field(
        default=0.0, description="Smallest probability over base rate; 0 or 1: any."
    )


class NotificationPolicy(BaseModel):
    """Rules by severity, what is left out, and the limit per machine and shift."""

    model_config = ConfigDict(extra="forbid", frozen=True, json_schema_extra={"examples": [_POLICY]})

    low: SeverityRule = SeverityRule()
    medium: SeverityRule = SeverityRule()
    high: SeverityRule = SeverityRule(probability=0.5)
    exclude_severities: tuple[Severity, ...] = Field(default=(), description="Severities left out.")
    exclude_codes: tuple[Code, ...] = Field(default=(), max_length=1000, description="Alarm codes left out.")
    per_shift: int | None = Field(
        default=None,
        ge=0,
        description="At most this many per machine and shift, the most valuable first; null: no limit.",
    )


class PolicyChange(BaseModel):
    """Set the policy of a site."""

    model_config = ConfigDict(
        extra="forbid", json_schema_extra={"examples": [{"policy": _POLICY, "reason": "Fewer calls at night"}]}
    )

    policy: NotificationPolicy
    reason: PrintableText = Field(max_length=1000, description="Recorded in the audit log.")


class WebhookPolicyChange(BaseModel):
    """Give a webhook its own policy, or with null that of the sites again."""

    model_config = ConfigDict(
        extra="forbid", json_schema_extra={"examples": [{"policy": _POLICY, "reason": "On call"}]}
    )

    policy: NotificationPolicy | None
    reason: PrintableText = Field(max_length=1000, description="Recorded in the audit log.")


_SITE_POLICY: JsonDict = {
    "site": "padova",
    "policy": _POLICY,
    "text": _TEXT,
    "is_default": False,
    "sent": 84,
    "held_back": 12,
}


class SitePolicyView(BaseModel):
    """The policy of a site."""

    model_config = ConfigDict(json_schema_extra={"examples": [_SITE_POLICY]})

    site: Identifier
    policy: NotificationPolicy
    text: str = Field(description="The policy in one sentence.")
    is_default: bool
    sent: int = Field(description="Notifications of the last 30 days.")
    held_back: int = Field(description="Notifications of the last 30 days over the limit of their shift.")


class PolicyList(BaseModel):
    """The policy of every site."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"policies": [_SITE_POLICY]}]})

    policies: list[SitePolicyView]
