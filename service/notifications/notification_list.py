"""Notices as people look at them: with who knows of each, and how it was told."""

from dataclasses import dataclass

from service.notifications.acknowledgement_store import AcknowledgementStore
from service.notifications.delivery_store import DeliveryStore
from service.notifications.models import Notification, NotificationQuery, NotificationReader
from service.notifications.suppression import Acknowledgement
from service.notifications.webhook import WebhookDelivery


@dataclass(frozen=True)
class NotificationRow:
    """A notice, who acknowledged it first, and how its deliveries go."""

    notice: Notification
    known: Acknowledgement | None
    deliveries: list[WebhookDelivery]


@dataclass(frozen=True)
class NotificationList:
    """Looks at notices."""

    notices: NotificationReader
    acknowledgements: AcknowledgementStore
    deliveries: DeliveryStore

    def page(self, query: NotificationQuery) -> list[NotificationRow]:
        """Return notices with all that belongs to them, newest first."""
        found = self.notices.page(query)
        numbers = [notice.id for notice in found]
        known, sent = self.acknowledgements.for_notifications(numbers), self.deliveries.for_notifications(numbers)
        return [NotificationRow(one, known.get(one.id), sent.get(one.id, [])) for one in found]
