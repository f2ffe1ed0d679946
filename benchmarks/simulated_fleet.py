"""A crowd of machines in one process and on one connection, as only an open broker allows.

Not so many agents: there is no spool, no last will and no connection for each of them. But what the service sees
is theirs: events that come by chance, one a message, numbered by each machine and sent again until the service's
own ack names them, and every five plant-minutes each machine's retained state.

``python -m benchmarks.simulated_fleet ORDERS`` takes its orders as JSON, sends until its input is closed, and
prints what
became of them as JSON.
"""

import heapq
import json
import random
import select
import socket
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from datetime import datetime
from operator import itemgetter

from benchmarks import packets
from benchmarks.servers import HOST
from benchmarks.synthetic_plant import CODES, Plant, epoch_of
from edge_agent.publisher import HEARTBEAT, RESEND_AFTER_S
from wire.acks import Ack
from wire.clock import PlantClock
from wire.codec import decode, encode
from wire.events import AlarmEvent, EventBatch
from wire.state import AgentState
from wire.topics import PREFIX, Channel, topic

Speak = Callable[[float], bytes]
_PULSE = 0.005  # seconds; what falls due in between goes out together
_HEARD = (Channel.ACKS, Channel.STATE)  # what agents subscribe to


@dataclass(frozen=True)
class Orders:
    """For which machines to speak, how often and from when on; times are wall time.

    With ``hurry`` all of it comes so many times as often as by the plant's clock: the messages of so many fleets.
    """

    port: int
    machines: int  # of the whole plant
    sites: list[str]
    wall_origin: str
    plant_origin: str
    speed: float
    alarms_a_day: float
    hurry: float
    first_seq: int
    begin: float
    warm_up: float
    drain: float
    seed: int = 19

    @property
    def clock(self) -> PlantClock:
        """The plant's clock, the same as the service's."""
        return PlantClock(
            datetime.fromisoformat(self.wall_origin), datetime.fromisoformat(self.plant_origin), self.speed
        )

    def words(self) -> str:
        """Return the orders as a command line takes them."""
        return json.dumps(asdict(self))


@dataclass
class FleetReport:
    """What became of the orders; ``lags`` are pairs of seconds, since the beginning and until the ack.

    ``behind`` is how late the crowd itself was at most: more than a blink, and it was the crowd that was slow.
    """

    offered: int = 0
    states: int = 0
    resent: int = 0
    unacked: int = 0
    behind: float = 0.0
    seconds: float = 0.0
    cpu_seconds: float = 0.0
    lags: list[tuple[float, float]] = field(default_factory=list)


@dataclass
class _Sent:
    """An event under way."""

    first: float
    last: float
    packet_topic: str
    payload: bytes


class Crowd:
    """Speaks when the time has come, listens all the time."""

    def __init__(self, orders: Orders, connection: socket.socket) -> None:
        self._orders, self._connection = orders, connection
        self._clock, self._chance = orders.clock, random.Random(orders.seed)  # noqa: S311 - a load, no secret
        self._machines = [one for one in Plant(orders.machines).ids if one.site in orders.sites]
        self._epochs = [epoch_of(machine) for machine in self._machines]
        self._seqs = [orders.first_seq] * len(self._machines)
        self._places = {topic(one, Channel.ACKS): place for place, one in enumerate(self._machines)}
        self._under_way: dict[tuple[int, int], _Sent] = {}  # the one sent longest ago comes first
        self._reader, self._message_id = packets.Reader(), 0
        self._pace = orders.speed * orders.hurry
        self.report = FleetReport()

    def run(self) -> None:
        """Publish until stopped, then wait for the last acks."""
        warm = self._orders.begin + self._orders.warm_up
        due = heapq.merge(self._events(), self._states(), key=itemgetter(0))
        at, speak = next(due)
        while not select.select([sys.stdin], [], [], 0)[0]:
            now = time.time()
            out = bytearray()
            while at <= now:
                if at >= warm:
                    self.report.behind = max(self.report.behind, now - at)
                out += speak(now)
                at, speak = next(due)
            out += self._overdue(now)
            self._connection.sendall(out)
            self._listen(min(_PULSE, max(0.0, at - now)))
        end = time.time()
        while self._under_way and time.time() < end + self._orders.drain:
            self._connection.sendall(self._overdue(time.time()))
            self._listen(_PULSE)
        self.report.unacked = len(self._under_way)
        self.report.seconds = end - self._orders.begin
        self.report.cpu_seconds = time.process_time()

    def _events(self) -> Iterator[tuple[float, Speak]]:
        """Yield when the next machine raises an alarm: any of them, after any time, so many a day on average."""
        a_second = len(self._machines) * self._orders.alarms_a_day * self._pace / 86_400
        at = self._orders.begin
        while a_second:
            at += self._chance.expovariate(a_second)
            yield at, self._event
        while True:
            yield float("inf"), self._event

    def _states(self) -> Iterator[tuple[float, Speak]]:
        """Yield when the next machine tells how it is: they take turns."""
        pause = HEARTBEAT.total_seconds() / self._pace / len(self._machines)
        at = self._orders.begin
        while True:
            at += pause
            yield at, self._state

    def _event(self, now: float) -> bytes:
        place = self._chance.randrange(len(self._machines))
        seq, self._seqs[place] = self._seqs[place], self._seqs[place] + 1
        event = AlarmEvent(seq=seq, code=self._chance.randrange(CODES), at=self._clock.now())
        payload = encode(EventBatch(epoch=self._epochs[place], events=[event]))
        sent = _Sent(now, now, topic(self._machines[place], Channel.EVENTS), payload)
        self._under_way[place, seq] = sent
        self.report.offered += 1
        return packets.publish(sent.packet_topic, payload, self._next_id())

    def _state(self, _now: float) -> bytes:
        place = self.report.states % len(self._machines)
        self.report.states += 1
        state = AgentState(
            online=True, agent="crowd", epoch=self._epochs[place], spooled=0, skew_ms=0, at=self._clock.now()
        )
        return packets.publish(
            topic(self._machines[place], Channel.STATE), encode(state), self._next_id(), retain=True
        )

    def _overdue(self, now: float) -> bytearray:
        """Return again what was not acked for as long as an agent waits."""
        out = bytearray()
        while self._under_way:
            key, sent = next(iter(self._under_way.items()))
            if now - sent.last < RESEND_AFTER_S:
                break
            del self._under_way[key]
            sent.last = now
            self._under_way[key] = sent
            self.report.resent += 1
            out += packets.publish(sent.packet_topic, sent.payload, self._next_id())
        return out

    def _listen(self, seconds: float) -> None:
        if not select.select([self._connection], [], [], seconds)[0]:
            return
        received = self._connection.recv(1 << 18)
        if not received:
            raise ConnectionError("the broker closed the crowd's connection")
        now, answers = time.time(), bytearray()
        for kind, body in self._reader.packets(received):
            if kind & 0xF0 == packets.PUBLISH:
                message = packets.message(kind, body)
                answers += packets.puback(message.id) if message.id else b""
                place = self._places.get(message.topic)
                if place is not None:
                    self._acked(place, decode(Ack, message.payload), now)
        self._connection.sendall(answers)

    def _acked(self, place: int, ack: Ack, now: float) -> None:
        if ack.epoch != self._epochs[place]:
            return
        for first, last in ack.seqs:
            for seq in range(first, last + 1):
                sent = self._under_way.pop((place, seq), None)
                if sent:
                    self.report.lags.append(
                        (round(sent.first - self._orders.begin, 4), round(now - sent.first, 5))
                    )

    def _next_id(self) -> int:
        self._message_id = self._message_id % packets.MESSAGE_IDS + 1
        return self._message_id


def speak(orders: Orders) -> FleetReport:
    """Connect, listen where the machines' agents would, and carry out the orders."""
    filters = [f"{PREFIX}/{site}/+/{channel.value}" for site in orders.sites for channel in _HEARD]
    with socket.create_connection((HOST, orders.port), timeout=30) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection.sendall(packets.connect(f"crowd-{orders.sites[0]}") + packets.subscribe(filters, 1))
        crowd = Crowd(orders, connection)
        time.sleep(max(0.0, orders.begin - time.time()))
        crowd.run()
    return crowd.report


def main(written: str) -> None:
    """Carry out orders and print what became of them."""
    print(json.dumps(asdict(speak(Orders(**json.loads(written))))))


if __name__ == "__main__":
    main(sys.argv[1])
