"""Notices as people look at them: with who knows of each, and how it was told."""

from dataclasses import dataclass

from service.core.hush import Acknowledgement
from service.core.notice import Notice, NoticeQuery
from service.core.webhook import Delivery
from service.flows.ports import NoticeLog
from service.store.acknowledgements import AcknowledgementStore
from service.store.deliveries import DeliveryStore


@dataclass(frozen=True)
class Told:
    """A notice, who acknowledged it first, and how its deliveries go."""

    notice: Notice
    known: Acknowledgement | None
    deliveries: list[Delivery]


@dataclass(frozen=True)
class NoticeBoard:
    """Looks at notices."""

    notices: NoticeLog
    acknowledgements: AcknowledgementStore
    deliveries: DeliveryStore

    def page(self, query: NoticeQuery) -> list[Told]:
        """Return notices with all that belongs to them, newest first."""
        found = self.notices.page(query)
        numbers = [notice.number for notice in found]
        known, sent = self.acknowledgements.of_notices(numbers), self.deliveries.of_notices(numbers)
        return [Told(one, known.get(one.number), sent.get(one.number, [])) for one in found]
