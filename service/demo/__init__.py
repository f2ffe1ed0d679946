"""The whole product on one machine: embedded broker, service and a simulated fleet of agents."""

from service.demo.run import check, show
from service.demo.setup import Plan

__all__ = ["Plan", "check", "show"]
