"""All rows of the matrix, in the order in which they are played."""

from tests.faults import (
    acks,
    brokers,
    cluster,
    copies,
    credentials,
    databases,
    disks,
    kills,
    learning,
    links,
    loads,
    numbers,
    sessions,
)
from tests.faults.registry import FAULTS, Effort, Fault

MODULES = (
    kills,
    brokers,
    links,
    acks,
    sessions,
    disks,
    databases,
    loads,
    learning,
    credentials,
    cluster,
    copies,
    numbers,
)

__all__ = ["FAULTS", "MODULES", "Effort", "Fault"]
