"""Alarmcast for programs: ``from alarmcast import Client``."""
