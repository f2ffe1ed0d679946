"""The health page: status of the service, its agents and infrastructure, and rejected messages."""

from service.page.health.page import health

__all__ = ["health"]
