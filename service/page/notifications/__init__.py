"""The notifications page: what was sent and why, its deliveries, and the webhooks."""

from service.page.notifications.page import notifications

__all__ = ["notifications"]
