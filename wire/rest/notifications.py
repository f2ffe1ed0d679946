"""Notices of likely alarms, as lists show them and as webhooks receive them."""

from enum import StrEnum

from pydantic import BaseModel, ConfigDict, Field
from pydantic.config import JsonDict

from wire.enums import DeliveryState, NotificationEnd
from wire.events import Code
from wire.forecasts import Share
from wire.identity import Identifier
from wire.timestamps import UtcDatetime

_NEWS: JsonDict = {
    "id": 41,
    "site": "padova",
    "machine": "filler-1",
    "code": 139,
    "text": "Film torn",
    "severity": "high",
    "as_of": "2026-11-16T08:00:00.000Z",
    "horizon_end": "2026-11-16T16:00:00.000Z",
    "probability": 0.71,
    "threshold": 0.4,
    "model_version": "v3",
    "opened_at": "2026-11-16T08:00:01.200Z",
}


class WebhookEventType(StrEnum):
    """What a message to a webhook is about."""

    OPENED = "notice.opened"
    TEST = "test"


class NotificationPayload(BaseModel):
    """A likely alarm as the forecast said it when it became news."""

    id: int
    site: Identifier
    machine: Identifier
    code: Code
    text: str
    severity: str
    as_of: UtcDatetime = Field(description="The forecast's moment, in plant time.")
    horizon_end: UtcDatetime = Field(description="The alarm is likely before this moment.")
    probability: Share
    threshold: Share
    model_version: str
    opened_at: UtcDatetime


class WebhookMessage(BaseModel):
    """The body of a delivery; a receiver ignores fields and happenings that it does not know."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"event": "notice.opened", "notice": _NEWS}]})

    event: WebhookEventType
    notification: NotificationPayload | None = Field(description="Null in a test.")


class DeliveryView(BaseModel):
    """How a notice's way to one webhook is going; its times are wall time."""

    webhook: int
    key: str = Field(description="What the receiver sees as Alarmcast-Delivery, the same at every attempt.")
    state: DeliveryState
    attempts: int
    next_try: UtcDatetime | None
    status: int | None = Field(description="The last HTTP status; null if there was no answer.")
    answer: str | None = Field(description="What the last status means, or why there was none.")
    delivered_at: UtcDatetime | None
    given_up_at: UtcDatetime | None


class AcknowledgementSummary(BaseModel):
    """Who acknowledged a notice first."""

    at: UtcDatetime
    actor: str
    note: str | None


class NotificationView(NotificationPayload):
    """A notice, whether it still stands, who knows, and who was told."""

    open: bool
    closed_at: UtcDatetime | None
    ended: NotificationEnd | None = Field(description="Why it was closed.")
    acknowledged: AcknowledgementSummary | None
    deliveries: list[DeliveryView]


class NotificationPage(BaseModel):
    """Notices, newest first; ``next`` is the cursor of the page after this one, null on the last."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "notices": [
                        _NEWS
                        | {
                            "open": True,
                            "closed_at": None,
                            "ended": None,
                            "acknowledged": {"at": "2026-11-16T08:09:00.000Z", "who": "Anna", "note": None},
                            "deliveries": [
                                {
                                    "webhook": 1,
                                    "key": "6f1f3b1e-0d5c-4f0e-9a34-2f6a4f1c9d55",
                                    "state": "delivered",
                                    "attempts": 1,
                                    "next_try": None,
                                    "status": 204,
                                    "answer": "",
                                    "delivered_at": "2026-11-16T08:00:01.400Z",
                                    "given_up_at": None,
                                }
                            ],
                        }
                    ],
                    "next": None,
                }
            ]
        }
    )

    notifications: list[NotificationView]
    next: int | None
