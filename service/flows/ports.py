"""What the flows need from the world outside, each as small as its use; stores and brokers fit these shapes."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Protocol

from forecasting.forecaster import Forecaster
from forecasting.series import AlarmSeries
from service.core.catalogue import CatalogueEntry
from service.core.history import AlarmPage, GapRecord, PageQuery
from service.core.machine import Agent, Knock, Machine
from service.core.recording import Recorded, Recording
from service.core.version import StoredForecast, Version
from wire.acks import Ack
from wire.identity import MachineId


class Machines(Protocol):
    """Who is registered, how their agents are, who knocks."""

    def add(self, machine: MachineId, *, name: str, time_zone: str, at: datetime) -> bool: ...
    def get(self, machine: MachineId) -> Machine: ...
    def find(self, machine: MachineId) -> Machine | None: ...
    def all(self) -> list[Machine]: ...
    def agents(self) -> dict[MachineId, Agent]: ...
    def agent(self, machine: Machine) -> Agent | None: ...
    def knocks(self) -> list[Knock]: ...


class Recorder(Protocol):
    """Where recordings become durable."""

    def commit(self, recording: Recording) -> Recorded: ...


class EventLog(Protocol):
    """Stored alarms, read by time."""

    def series(self, machine: Machine, start: datetime, end: datetime) -> AlarmSeries: ...
    def first_at(self, machine: Machine) -> datetime | None: ...
    def last_at(self, machine: Machine) -> datetime | None: ...
    def gaps(self, machine: Machine, start: datetime, end: datetime) -> list[GapRecord]: ...
    def page(self, machine: Machine, query: PageQuery) -> AlarmPage: ...


class Catalogue(Protocol):
    """What the codes mean."""

    def entries(self) -> dict[int, CatalogueEntry]: ...
    def merge(self, entries: Iterable[CatalogueEntry]) -> int: ...


class Versions(Protocol):
    """Models that were learned, and which of them served when."""

    def champion(self) -> Version | None: ...
    def serving_at(self, at: datetime) -> Version | None: ...
    def all(self) -> list[Version]: ...
    def load(self, version: Version) -> Forecaster: ...


class StoredForecasts(Protocol):
    """Forecasts as they were served, immutable."""

    def add(self, forecasts: Sequence[StoredForecast]) -> None: ...
    def made_at(self, at: datetime) -> set[int]: ...


class Acker(Protocol):
    """The way back to the agents."""

    def ack(self, machine: MachineId, ack: Ack) -> None: ...


class Announcer(Protocol):
    """Where an HMI beside the machine finds its newest forecast."""

    def announce(self, machine: MachineId, encoded: bytes) -> None: ...
