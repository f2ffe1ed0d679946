"""Notices as people look at them: with who knows of each, and how it was told."""

from dataclasses import dataclass

from service.core.hush import Acknowledgement
from service.core.notice import Notification, NotificationQuery
from service.core.webhook import Delivery
from service.flows.ports import NoticeLog
from service.store.acknowledgements import AcknowledgementStore
from service.store.deliveries import DeliveryStore


@dataclass(frozen=True)
class Told:
    """A notice, who acknowledged it first, and how its deliveries go."""

    notice: Notification
    known: Acknowledgement | None
    deliveries: list[Delivery]


@dataclass(frozen=True)
class NotificationList:
    """Looks at notices."""

    notices: NoticeLog
    acknowledgements: AcknowledgementStore
    deliveries: DeliveryStore

    def page(self, query: NotificationQuery) -> list[Told]:
        """Return notices with all that belongs to them, newest first."""
        found = self.notices.page(query)
        numbers = [notice.number for notice in found]
        known, sent = self.acknowledgements.for_notifications(numbers), self.deliveries.for_notifications(numbers)
        return [Told(one, known.get(one.number), sent.get(one.number, [])) for one in found]
