"""All rows of the matrix, in the order in which they are played."""

from tests.faults import (
    acks,
    brokers,
    cluster,
    credentials,
    databases,
    disks,
    kills,
    learning,
    links,
    loads,
    sessions,
)
from tests.faults.registry import FAULTS, Effort, Fault

MODULES = (kills, brokers, links, acks, sessions, disks, databases, loads, learning, credentials, cluster)

__all__ = ["FAULTS", "MODULES", "Effort", "Fault"]
