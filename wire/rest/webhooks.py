"""Webhooks: who is told of notices."""

from typing import Self

from pydantic import BaseModel, ConfigDict, Field, model_validator
from pydantic.config import JsonDict

from wire.enums import Severity
from wire.identity import Identifier
from wire.rest.texts import PrintableText
from wire.timestamps import UtcDatetime

_WEBHOOK: JsonDict = {
    "id": 1,
    "url": "https://andon.example/alarms",
    "severity": "high",
    "site": "padova",
    "machine": None,
    "enabled": True,
    "trouble": None,
    "created_at": "2026-11-16T08:00:00.000Z",
}


class WebhookCreate(BaseModel):
    """Who shall be told, and of what."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={
            "examples": [{"url": "https://andon.example/alarms", "severity": "high", "site": "padova"}]
        },
    )

    url: PrintableText = Field(max_length=2000, description="http or https, without user and password.")
    severity: Severity = Field(default=Severity.HIGH, description="Only alarms at least as bad.")
    site: Identifier | None = Field(default=None, description="Only this site's.")
    machine: Identifier | None = Field(default=None, description="Only this machine's; its site must be named.")
    reason: PrintableText | None = Field(default=None, max_length=1000, description="Kept in the book of changes.")

    @model_validator(mode="after")
    def _a_machine_has_a_site(self) -> Self:
        if self.machine is not None and self.site is None:
            raise ValueError("name the machine's site too")
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
    error: str | None = Field(description="Why it is switched off.")
    created_at: UtcDatetime


class NewWebhook(WebhookView):
    """A webhook that was just made, with the secret that its deliveries are signed with, shown this once."""

    model_config = ConfigDict(json_schema_extra={"examples": [_WEBHOOK | {"secret": "whsec_…"}]})

    secret: str


class WebhookList(BaseModel):
    """Every webhook, oldest first."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"webhooks": [_WEBHOOK]}]})

    webhooks: list[WebhookView]


class WebhookSwitch(BaseModel):
    """Whether a webhook is told, and why."""

    model_config = ConfigDict(
        extra="forbid", json_schema_extra={"examples": [{"enabled": True, "reason": "The andon board is back"}]}
    )

    enabled: bool
    reason: PrintableText = Field(max_length=1000, description="Kept in the book of changes.")


class WebhookAnswer(BaseModel):
    """What the receiver said to a test."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"delivered": True, "status": 204, "answer": "", "seconds": 0.013}]}
    )

    delivered: bool = Field(description="Whether it answered with a 2xx.")
    status: int | None = Field(description="The HTTP status; null if there was no answer.")
    answer: str = Field(description="What the status means, or why there was none; never what it wrote.")
    seconds: float
