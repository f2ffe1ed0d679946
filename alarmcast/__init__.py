"""Alarmcast for programs: ``from alarmcast import Client``, or ``AsyncClient``."""

from alarmcast.client import AsyncClient, Client
from alarmcast.errors import (
    AlarmcastError,
    ApiError,
    Conflict,
    Gone,
    NotFound,
    Rejected,
    TooLarge,
    Unavailable,
    Unreachable,
    Unreadable,
)
from alarmcast.in_process import InProcess
from alarmcast.patience import Patience

__all__ = [
    "AlarmcastError",
    "ApiError",
    "AsyncClient",
    "Client",
    "Conflict",
    "Gone",
    "InProcess",
    "NotFound",
    "Patience",
    "Rejected",
    "TooLarge",
    "Unavailable",
    "Unreachable",
    "Unreadable",
]
