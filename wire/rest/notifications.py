"""Notifications of likely alarms, in lists and in webhook messages."""

from enum import StrEnum

from pydantic import BaseModel, ConfigDict, Field
from pydantic.config import JsonDict

from wire.enums import DeliveryState, NotificationEnd
from wire.events import Code
from wire.forecasts import Share
from wire.identity import Identifier
from wire.rest.answers import AnswerView
from wire.rest.catalogue import NO_RESPONSE, AlarmResponse
from wire.timestamps import UtcDatetime

_NOTIFICATION: JsonDict = {
    "id": 41,
    "site": "padova",
    "machine": "filler-1",
    "code": 139,
    "text": "Film torn",
    "severity": "high",
    "as_of": "2026-11-16T08:00:00.000Z",
    "horizon_end": "2026-11-16T16:00:00.000Z",
    "probability": 0.71,
    "threshold": 0.5,
    "model_version": "v3",
    "opened_at": "2026-11-16T08:00:01.200Z",
    "webhook": None,
    "similar_right": 4,
    "similar_total": 5,
    "record": "4 of 5 such notifications were right in the last 30 days.",
    "links": {
        "machine": "https://alarmcast.example/machines/padova/filler-1",
        "why": "https://alarmcast.example/machines/padova/filler-1?code=139",
    },
    "response": {
        "cause": "Web edge damaged",
        "consequence": "The machine stops",
        "action": "Splice the film",
        "link": "https://wiki.example/alarms/139",
    },
}


class WebhookEventType(StrEnum):
    """Type of a webhook message."""

    OPENED = "notification.opened"
    TEST = "test"


class NotificationLinks(BaseModel):
    """Pages about a notification; without the setting public_url they are paths."""

    machine: str
    why: str = Field(description="The machine's page with the factors of this alarm.")


class NotificationPayload(BaseModel):
    """A likely alarm with the values of the forecast that opened the notification."""

    id: int
    site: Identifier
    machine: Identifier
    code: Code
    text: str
    severity: str
    as_of: UtcDatetime = Field(description="When the forecast was issued, plant time.")
    horizon_end: UtcDatetime = Field(description="End of the forecast horizon.")
    probability: Share
    threshold: Share = Field(description="The probability from which the policy notifies of the alarm.")
    model_version: str
    opened_at: UtcDatetime
    webhook: int | None = Field(description="Webhook whose own policy opened it; null: the policy of the site.")
    similar_right: int = Field(description="Of `similar_total`, those whose alarm occurred within the horizon.")
    similar_total: int = Field(
        description="Evaluated notifications of this alarm on this machine in the 30 days before."
    )
    record: str = Field(description="The same in one sentence.")
    links: NotificationLinks
    response: AlarmResponse = Field(default=NO_RESPONSE, description="What the catalogue says now.")


class WebhookMessage(BaseModel):
    """The body of a delivery; receivers ignore unknown fields and event types."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"event": "notification.opened", "notification": _NOTIFICATION}]}
    )

    event: WebhookEventType
    notification: NotificationPayload | None = Field(description="Null in a test.")


class DeliveryView(BaseModel):
    """Delivery of a notification to one webhook; times are wall time."""

    webhook: int
    key: str = Field(description="Value of the Alarmcast-Delivery header, the same at every attempt.")
    state: DeliveryState
    attempts: int
    next_try: UtcDatetime | None
    status: int | None = Field(description="The last HTTP status; null if there was no response.")
    answer: str | None = Field(description="Meaning of the last status, or the error.")
    delivered_at: UtcDatetime | None
    given_up_at: UtcDatetime | None


class AcknowledgementSummary(BaseModel):
    """First acknowledgement of a notification."""

    at: UtcDatetime
    actor: str
    note: str | None


class NotificationView(NotificationPayload):
    """A notification with its state, acknowledgement and deliveries."""

    open: bool
    held_back: bool = Field(description="Over the limit of its shift: not sent to webhooks.")
    closed_at: UtcDatetime | None
    ended: NotificationEnd | None = Field(description="Why it was closed.")
    acknowledged: AcknowledgementSummary | None
    answer: AnswerView | None
    deliveries: list[DeliveryView]


class NotificationPage(BaseModel):
    """Notifications, newest first; ``next`` is the cursor of the next page, null on the last."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "notifications": [
                        _NOTIFICATION
                        | {
                            "open": True,
                            "held_back": False,
                            "closed_at": None,
                            "ended": None,
                            "acknowledged": {"at": "2026-11-16T08:09:00.000Z", "actor": "Anna", "note": None},
                            "answer": None,
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
