"""The fleet at a glance: a card for each machine, made anew only when something about it has changed."""

import time
from collections.abc import Callable, Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from datetime import datetime, timedelta
from threading import Lock
from typing import NamedTuple

from service.errors import Unavailable
from service.forecasts.alarm_value import alarm_value
from service.forecasts.cache import CachedForecast, ForecastCache
from service.forecasts.champion import ChampionCache, LoadedModel
from service.forecasts.version import Version
from service.http.principal import Sites
from service.machines.catalogue import CatalogueEntry, unknown_code
from service.machines.catalogue_store import CatalogueStore
from service.machines.evidence_store import HourlyCountStore
from service.machines.models import (
    Agent,
    HourlyCounts,
    Machine,
    UnregisteredMachine,
    connection_status,
    hourly_counts_end,
)
from service.machines.silence import SilenceDetector
from service.machines.store import MachineStore
from wire.clock import PlantClock
from wire.enums import ConnectionStatus
from wire.forecasts import LikelyAlarm
from wire.identity import MachineId
from wire.rest.fleet import MOST_LIKELY, STRIP_HOURS, FleetCard, LastAlarm, LikelyView, ShelvedAlarm

_REFRESH_INTERVAL_S = 0.5  # seconds: however many ask, the fleet is looked at this often at most
_MIN_PAUSE_S = 4  # and at most a fifth of the time goes into it, which ten thousand machines would else take whole
_MAKE_AT_ONCE = 10  # forecasts
_MAX_REMOVED = 1000  # machines; who was away while more than these left gets everything


class CachedCard(NamedTuple):
    """A card, its bytes, and the number of the look at which it last changed."""

    card: FleetCard
    encoded: bytes
    changed: int


@dataclass(frozen=True)
class FleetSnapshot:
    """What an answer is made of; ``complete`` if all cards are here and not only those that changed."""

    revision: str
    complete: bool
    plant_time: datetime
    model_version: str | None
    cards: list[CachedCard]
    gone: list[MachineId]
    unregistered: list[UnregisteredMachine]
    sites: list[str]


class _CardInputs(NamedTuple):
    """All that a card is made from, but for what is the same for every machine; equal facts, equal card."""

    machine: Machine
    agent: Agent | None
    presence: ConnectionStatus
    shelved: frozenset[int]
    newest: CachedForecast | None
    arrival: int


class _SharedInputs(NamedTuple):
    """What all cards are made from."""

    entries: dict[int, CatalogueEntry]
    version: Version | None
    strip_end: datetime


class _CardState(NamedTuple):
    """What is remembered of a machine."""

    facts: _CardInputs
    strip: HourlyCounts
    kept: CachedCard


@dataclass(frozen=True)
class FleetDependencies:
    """Where cards come from."""

    machines: MachineStore
    strips: HourlyCountStore
    catalogue: CatalogueStore
    champion: ChampionCache
    newest: ForecastCache
    silence: SilenceDetector
    clock: PlantClock
    stale_after: timedelta
    shelved: Callable[[], Mapping[MachineId, AbstractSet[int]]] = dict  # codes that nobody wants to hear of now


class FleetService:
    """Holds the cards of the whole fleet; asking costs little as long as little changes.

    ``token`` tells this process's revisions from those of another.
    """

    def __init__(
        self, sources: FleetDependencies, *, token: str, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._from, self._token, self._monotonic = sources, token, monotonic
        self._lock = Lock()
        self._look_at = float("-inf")
        self._number = 0  # of the last look that found something new
        self._common: _SharedInputs | None = None
        self._version: str | None = None
        self._places: dict[MachineId, _CardState] = {}
        self._gone: dict[MachineId, int] = {}
        self._gone_since = 0  # departures up to this number are forgotten
        self._ordered: list[CachedCard] = []
        self._unregistered: list[UnregisteredMachine] = []

    def overview(self, *, site: str | None = None, since: str | None = None, sites: Sites = None) -> FleetSnapshot:
        """Return the fleet, or only what changed since a revision that this process has given.

        ``site`` is the one asked about, ``sites`` are those that the asker may know of.
        """

        def wanted(one: str) -> bool:
            return site in (None, one) and (sites is None or one in sites)

        with self._lock:
            now = self._from.clock.now()
            if (started := self._monotonic()) >= self._look_at:
                self._refresh(now)
                looked = self._monotonic()
                self._look_at = looked + max(_REFRESH_INTERVAL_S, _MIN_PAUSE_S * (looked - started))
            after = self._read(since)
            return FleetSnapshot(
                revision=f"{self._token}.{self._number}",
                complete=after is None,
                plant_time=now,
                model_version=self._version,
                cards=[
                    kept
                    for kept in self._ordered
                    if wanted(kept.card.site) and (after is None or kept.changed > after)
                ],
                gone=[]
                if after is None
                else [one for one, left in self._gone.items() if left > after and wanted(one.site)],
                unregistered=[other for other in self._unregistered if wanted(other.machine.site)],
                sites=sorted({one.site for one in self._places if sites is None or one.site in sites}),
            )

    def _read(self, revision: str | None) -> int | None:
        """Return the number of a revision, or None if it does not say what the asker knows."""
        token, _, number = (revision or "").rpartition(".")
        if token != self._token or not (number.isascii() and number.isdigit()):
            return None
        return int(number) if self._gone_since <= int(number) <= self._number else None

    def _refresh(self, now: datetime) -> None:
        """Make anew the cards of machines about which something has changed."""
        self._unregistered = self._from.machines.unregistered()
        machines, agents = self._from.machines.all(), self._from.machines.agents()
        serving = self._serving()
        common = self._now_common(now, serving)
        everything = common != self._common
        silent = {one.machine for one in self._from.silence.current(now)}
        forecasts, shelved = self._forecasts(machines, serving), self._from.shelved()
        facts = {
            machine.id: _CardInputs(
                machine,
                agent := agents.get(machine.id),
                connection_status(agent, now, stale_after=self._from.stale_after, silent=machine.id in silent),
                frozenset(shelved.get(machine.id, ())),
                forecasts.get(machine.id),
                self._from.newest.version(machine.id),
            )
            for machine in machines
        }
        old = self._places
        changed = [one for one in facts.values() if everything or not _same(old.get(one.machine.id), one)]
        strips = self._read_strips(changed, common.strip_end)
        number = self._number + 1
        places = {key: place for key, place in old.items() if key in facts}
        for one in changed:
            machine = one.machine
            strip = strips.get(machine.row_id) or old[machine.id].strip
            card = _card(one, strip, common)
            before = old.get(machine.id)
            if before is not None and before.kept.card == card:
                kept = before.kept  # made anew, and the same: nobody need hear of it
            else:
                kept = CachedCard(card, card.model_dump_json().encode(), number)
            places[machine.id] = _CardState(one, strip, kept)
        self._note_gone(old.keys() - facts.keys(), facts, number)
        if any(places[one.machine.id].kept.changed == number for one in changed) or old.keys() - facts.keys():
            self._number = number
            self._ordered = sorted((place.kept for place in places.values()), key=lambda kept: kept.card.place)
        self._places, self._common = places, common
        self._version = serving.version.name if serving else None

    def _serving(self) -> LoadedModel | None:
        try:
            return self._from.champion.current()
        except (
            Unavailable
        ):  # nothing learned yet, or its weights cannot be read; cards are worth having all the same
            return None

    def _now_common(self, now: datetime, serving: LoadedModel | None) -> _SharedInputs:
        return _SharedInputs(
            self._from.catalogue.entries(), serving.version if serving else None, hourly_counts_end(now)
        )

    def _forecasts(self, machines: list[Machine], serving: LoadedModel | None) -> dict[MachineId, CachedForecast]:
        """Return each machine's forecast, or its last one while the rhythm has not made the next.

        A few are made here where the version that serves has made none yet; a large fleet that was just started
        or given a new version gets its forecasts from the rhythm, because nobody should wait for all of them.
        """
        if serving is None:
            return {}
        found: dict[MachineId, CachedForecast] = {}
        missing = []
        for machine in machines:
            place = self._places.get(machine.id)
            last = place.facts.newest if place and place.facts.machine.row_id == machine.row_id else None
            newest = self._from.newest.get(machine.id) or last
            if newest is not None:
                found[machine.id] = newest
            if newest is None or newest.forecast.model_version != serving.version.name:
                missing.append(machine)
        return found | {one.machine: one for one in self._from.newest.fresh_for(missing[:_MAKE_AT_ONCE])}

    def _read_strips(self, changed: list[_CardInputs], end: datetime) -> dict[int, HourlyCounts]:
        """Read the strips of machines that something has arrived for, or of all when the hour has turned."""
        turned = self._common is None or self._common.strip_end != end
        wanted = [one.machine for one in changed if turned or self._has_arrived(one)]
        return self._from.strips.counts(wanted, end, STRIP_HOURS) if wanted else {}

    def _has_arrived(self, facts: _CardInputs) -> bool:
        place = self._places.get(facts.machine.id)
        if place is None or place.facts.machine.row_id != facts.machine.row_id:
            return True
        return place.facts.arrival != facts.arrival

    def _note_gone(self, left: Iterable[MachineId], here: dict[MachineId, _CardInputs], number: int) -> None:
        for machine in here.keys() & self._gone.keys():
            del self._gone[machine]
        self._gone |= dict.fromkeys(left, number)
        while len(self._gone) > _MAX_REMOVED:
            oldest = min(self._gone, key=lambda machine: self._gone[machine])
            self._gone_since = max(self._gone_since, self._gone.pop(oldest))


def _same(place: _CardState | None, facts: _CardInputs) -> bool:
    if place is None:
        return False
    old = place.facts
    return old.newest is facts.newest and old[:4] == facts[:4] and old.arrival == facts.arrival


def _card(facts: _CardInputs, strip: HourlyCounts, common: _SharedInputs) -> FleetCard:
    machine, agent = facts.machine, facts.agent
    # Of a machine that has never connected only an imported past is known, which says nothing about the present.
    newest = None if facts.presence is ConnectionStatus.NEVER else facts.newest
    forecast = newest.forecast if newest else None
    alarms = _in_words(forecast.alarms if forecast else [], common.entries, facts.shelved)
    active = [alarm for alarm in alarms if not alarm.shelved]
    return FleetCard(
        site=machine.id.site,
        machine=machine.id.machine,
        name=machine.name,
        time_zone=machine.time_zone,
        state=machine.state,
        presence=facts.presence,
        last_seen_at=agent.last_seen_at if agent else None,
        spooled=agent.spooled if agent else None,
        last_alarm=_last_alarm(strip, common.entries),
        hourly_counts=list(strip.counts),
        hourly_counts_end=common.strip_end,
        forecast_status=forecast.status if forecast else None,
        learned=common.version is not None and common.version.has_learned(machine.id),
        likely=sorted(alarms, key=_urgency)[:MOST_LIKELY],
        expected=sum(alarm.expected for alarm in active),
        shelved=[ShelvedAlarm(code=code, text=_text(code, common.entries)) for code in sorted(facts.shelved)],
        urgency=max(map(_value, active), default=0.0),
    )


def _last_alarm(strip: HourlyCounts, entries: dict[int, CatalogueEntry]) -> LastAlarm | None:
    if strip.last_at is None or strip.last_code is None:
        return None
    entry = entries.get(strip.last_code) or unknown_code(strip.last_code)
    return LastAlarm(at=strip.last_at, code=strip.last_code, text=entry.text, severity=entry.severity)


def _text(code: int, entries: dict[int, CatalogueEntry]) -> str:
    return (entries.get(code) or unknown_code(code)).text


def _in_words(
    alarms: Iterable[LikelyAlarm], entries: dict[int, CatalogueEntry], shelved: AbstractSet[int]
) -> list[LikelyView]:
    """Return a forecast's alarms as the catalogue has them now; it may have changed since the forecast."""
    views = []
    for alarm in alarms:
        entry = entries.get(alarm.code)
        if entry is None or entry.target:  # what is no target any more is of no interest
            words = {"text": entry.text, "severity": entry.severity} if entry else {}
            usual = alarm.base_rate
            lift = round(alarm.probability / usual, 2) if usual else None
            views.append(LikelyView(**alarm.model_dump() | words, lift=lift, shelved=alarm.code in shelved))
    return views


def _value(alarm: LikelyView) -> float:
    return alarm_value(alarm.severity, alarm.probability, alarm.base_rate)


def _urgency(alarm: LikelyView) -> tuple[bool, float, float]:
    """Order alarms: by value, then by probability, and last the shelved."""
    return (alarm.shelved, -_value(alarm), -alarm.probability)
