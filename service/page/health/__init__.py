"""Health: how the service, its agents and its surroundings are, and what was refused."""

from service.page.health.page import health

__all__ = ["health"]
