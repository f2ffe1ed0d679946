"""Alarmcast for programs: ``from alarmcast import Client``, or ``AsyncClient``."""

from alarmcast.client import AsyncClient, Client
from alarmcast.errors import (
    AlarmcastError,
    ApiError,
    Conflict,
    Forbidden,
    Gone,
    InvalidResponse,
    NotFound,
    NotSignedIn,
    Rejected,
    TooLarge,
    TooMany,
    Unavailable,
    Unreachable,
)
from alarmcast.in_process import InProcess
from alarmcast.retry import RetryPolicy

__all__ = [
    "AlarmcastError",
    "ApiError",
    "AsyncClient",
    "Client",
    "Conflict",
    "Forbidden",
    "Gone",
    "InProcess",
    "InvalidResponse",
    "NotFound",
    "NotSignedIn",
    "Rejected",
    "RetryPolicy",
    "TooLarge",
    "TooMany",
    "Unavailable",
    "Unreachable",
]
