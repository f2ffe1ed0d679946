"""Alarms: how many there are, which, when, and what makes them more than people can take in."""

from service.page.alarms.page import alarms

__all__ = ["alarms"]
