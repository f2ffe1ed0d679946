"""The whole product on one machine: embedded broker, service and a simulated fleet of agents."""

from service.demo.plan import Plan
from service.demo.run import check, show

__all__ = ["Plan", "check", "show"]
