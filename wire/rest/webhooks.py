"""Webhooks: HTTP receivers of notifications."""

from typing import Self

from pydantic import BaseModel, ConfigDict, Field, model_validator
from pydantic.config import JsonDict

from wire.enums import Severity
from wire.identity import Identifier
from wire.rest.policies import NotificationPolicy
from wire.rest.texts import PrintableText
from wire.timestamps import UtcDatetime

_WEBHOOK: JsonDict = {
    "id": 1,
    "url": "https://andon.example/alarms",
    "severity": "high",
    "site": "padova",
    "machine": None,
    "enabled": True,
    "error": None,
    "created_at": "2026-11-16T08:00:00.000Z",
    "policy": None,
    "policy_text": None,
}


class WebhookCreate(BaseModel):
    """Create a webhook."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={
            "examples": [{"url": "https://andon.example/alarms", "severity": "high", "site": "padova"}]
        },
    )

    url: PrintableText = Field(max_length=2000, description="http or https, without user and password.")
    severity: Severity = Field(default=Severity.HIGH, description="Minimum severity.")
    site: Identifier | None = Field(default=None, description="Only of this site.")
    machine: Identifier | None = Field(default=None, description="Only of this machine; needs `site`.")
    policy: NotificationPolicy | None = Field(
        default=None, description="Its own policy; unless given, that of each machine's site."
    )
    reason: PrintableText | None = Field(default=None, max_length=1000, description="Recorded in the audit log.")

    @model_validator(mode="after")
    def _require_site_of_machine(self) -> Self:
        if self.machine is not None and self.site is None:
            raise ValueError("a machine needs its site")
        return self


class WebhookView(BaseModel):
    """A webhook; its secret is not shown again."""

    model_config = ConfigDict(json_schema_extra={"examples": [_WEBHOOK]})

    id: int
    url: str
    severity: Severity
    site: Identifier | None
    machine: Identifier | None
    enabled: bool
    error: str | None = Field(description="Why it is disabled.")
    created_at: UtcDatetime
    policy: NotificationPolicy | None = Field(description="Its own policy; null: that of each machine's site.")
    policy_text: str | None = Field(description="Its own policy in one sentence.")


class NewWebhook(WebhookView):
    """A new webhook with the secret that signs its deliveries; shown only once."""

    model_config = ConfigDict(json_schema_extra={"examples": [_WEBHOOK | {"secret": "whsec_…"}]})

    secret: str


class WebhookList(BaseModel):
    """Every webhook, oldest first."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"webhooks": [_WEBHOOK]}]})

    webhooks: list[WebhookView]


class WebhookSwitch(BaseModel):
    """Enable or disable a webhook."""

    model_config = ConfigDict(
        extra="forbid", json_schema_extra={"examples": [{"enabled": True, "reason": "The andon board is back"}]}
    )

    enabled: bool
    reason: PrintableText = Field(max_length=1000, description="Recorded in the audit log.")


class WebhookAnswer(BaseModel):
    """The response of a receiver to a test message."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"delivered": True, "status": 204, "answer": "", "seconds": 0.013}]}
    )

    delivered: bool = Field(description="Whether the status is 2xx.")
    status: int | None = Field(description="The HTTP status; null if there was no response.")
    answer: str = Field(description="Meaning of the status, or the error; never the response body.")
    seconds: float
