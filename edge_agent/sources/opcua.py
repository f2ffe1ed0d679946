"""Subscribe to an OPC UA server: tags, PackML arrays, or alarms and conditions."""

import asyncio
import logging
import time
from collections import deque
from collections.abc import Coroutine, Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from threading import Event
from typing import Any, Literal, Self, TypeVar

from asyncua import Client, ua
from asyncua.client.ua_client import UaClientState
from asyncua.common.subscription import Subscription
from pydantic import Field, model_validator

from edge_agent.sources import Context
from edge_agent.sources.monitor import Monitored, Reading
from edge_agent.sources.opcua_conditions import EVENT_FILTER, ConditionReader
from edge_agent.sources.opcua_packml import PackmlMembers
from edge_agent.sources.opcua_security import log_in_with_certificate, make_secure
from edge_agent.sources.opcua_values import TagSignal, tag_alarms
from edge_agent.sources.signals import Options, Unreachable, Unreadable, by_address, parse_options
from wire.broker_check import Finding

_TIMEOUT_S = 5.0
_WAIT_S = 0.2
_QUEUE_SIZE = 1000  # of a monitored item; 0 and 1 lose changes, and the maximum has a special meaning
_MAX_WAITING = 100_000  # notifications; beyond it the connection is closed, which is a gap
_MAX_READINGS = 5000  # stored in one transaction
_MAX_FUTURE = timedelta(minutes=5)
_MAX_SKEW = timedelta(minutes=1)
_OVERFLOW = 0x480  # info bits of a status code: changes before this one were lost
_CHECK_NODES_S = 5.0
_NODE_CLASS = ua.AttributeIds.NodeClass
_STOP_REASON = "StopReason"  # of PackML: the alarm for which the machine stands; many servers have none
_T = TypeVar("_T")


class OpcuaOptions(Options):
    """The table ``[opcua]``."""

    url: str = Field(pattern=r"^opc\.tcp://")
    mode: Literal["tags", "packml", "conditions"]
    username: str | None = None
    user_certificate: Path | None = None
    user_private_key: Path | None = None
    security_policy: Literal["None", "Basic256Sha256", "Aes128Sha256RsaOaep", "Aes256Sha256RsaPss"] = "None"
    security_mode: Literal["Sign", "SignAndEncrypt"] = "SignAndEncrypt"
    certificate: Path = Path("opcua.der")
    private_key: Path = Path("opcua.pem")
    server_certificate: Path | None = None
    publish_ms: float = Field(default=100.0, ge=10, le=60_000)
    debounce_seconds: float = Field(default=0.0, ge=0, le=3600)
    timestamps: Literal["source", "agent"] = "source"
    node: str | None = None
    arrays: tuple[str, ...] = ("Alarm", "Warning")
    signals: tuple[TagSignal, ...] = ()

    @model_validator(mode="after")
    def _is_complete(self) -> Self:
        if self.mode == "tags" and not self.signals:
            raise ValueError('mode = "tags" needs [[opcua.signals]]')
        if self.mode == "packml" and self.node is None:
            raise ValueError('mode = "packml" needs node, the node id of the Admin folder')
        if self.security_policy != "None" and self.server_certificate is None:
            raise ValueError("a security_policy needs server_certificate, the file of the server's certificate")
        if (self.user_certificate is None) != (self.user_private_key is None):
            raise ValueError("user_certificate and user_private_key go together; give both or neither")
        if self.user_certificate is not None and (self.security_policy == "None" or self.username is not None):
            raise ValueError("a user_certificate needs a security_policy, and excludes username")
        return self


class OpcuaDevice:
    """A session with one subscription; its event loop runs only while it is asked for readings."""

    unnoticed = timedelta(seconds=2 * _TIMEOUT_S)  # an interval of the watchdog and its request
    unknown = None  # a subscription begins with the state

    def __init__(self, options: OpcuaOptions, context: Context) -> None:
        self._options, self._context = options, context
        self._loop: asyncio.AbstractEventLoop | None = None
        self._client: Client | None = None
        self._subscription: Subscription | None = None
        self._number: int | None = None  # of the subscription: another one means that changes were lost
        self._conditions = ConditionReader()
        self._members = PackmlMembers()
        self._waiting: deque[Any] = deque()
        self._arrived = asyncio.Event()
        self._names: dict[ua.NodeId, str] = {}
        self._handles: dict[str, int] = {}  # of monitored items
        self._signals = by_address((signal.node, signal) for signal in options.signals)
        self._missing: dict[str, str] = {}
        self._check_at = 0.0
        self.title = options.url

    def open(self) -> None:
        """Connect and subscribe."""
        self._loop, self._arrived = asyncio.new_event_loop(), asyncio.Event()
        self._run(self._connect())

    def readings(self, _stop: Event) -> list[Reading]:
        """Return what has arrived, after a short wait if nothing has."""
        return self._run(self._collect())

    def check(self) -> Iterator[Finding]:
        """Yield the clock's difference and whether each node can be read."""
        skew = self._run(self._skew())
        behind = "ahead of" if skew > timedelta(0) else "behind"
        message = f"the server's clock is {abs(skew.total_seconds()):.0f} s {behind} this one"
        yield Finding("source clock", ok=True if abs(skew) < _MAX_SKEW else None, message=message)
        for signal, reading in self._first_readings().items():
            active = ", ".join(sorted(reading.active)) or "no alarm"
            message = reading.problem or f"active now: {active}"
            yield Finding(signal, ok=reading.problem is None, message=message)

    def _first_readings(self) -> dict[str, Reading]:
        """Return a reading of each node; of conditions those that a refresh sends."""
        found: dict[str, Reading] = {}
        is_complete, until = False, time.monotonic() + _TIMEOUT_S
        while not is_complete and time.monotonic() < until:
            for reading in self._run(self._collect()):
                found.setdefault(reading.signal or "conditions", reading)
            wanted = {self._members.array_of(name) for name in self._names.values()} | set(self._missing)
            is_complete = wanted <= set(found) and bool(found)
        return found

    def close(self) -> None:
        """Disconnect; the server may be gone."""
        client, self._client, self._subscription = self._client, None, None
        if client is not None:
            try:
                self._run(asyncio.wait_for(client.disconnect(), _TIMEOUT_S))
            except Unreachable:
                client.disconnect_socket()
        if self._loop is not None:
            self._run(_cancel_tasks())
            self._loop.close()
            self._loop = None

    # --- notifications, called by asyncua ----------------------------------------------------------------

    def datachange_notification(self, node: Any, _value: Any, data: Any) -> None:
        self._take((node.nodeid, data.monitored_item.Value))

    def event_notification(self, event: Any) -> None:
        self._take(event)

    def status_change_notification(self, status: Any) -> None:
        self._take(Unreachable(f"the subscription has ended: {status.Status.name}"))

    def _take(self, notification: Any) -> None:
        self._waiting.append(notification)
        self._arrived.set()

    # --- the session ---------------------------------------------------------------------------------

    def _run(self, work: Coroutine[Any, Any, _T]) -> _T:
        if self._loop is None:
            work.close()
            raise Unreachable("not connected")
        try:
            return self._loop.run_until_complete(work)
        except Unreachable:
            raise
        except Exception as error:  # noqa: BLE001 - the library raises errors of many kinds, also of cryptography
            raise Unreachable(str(error) or type(error).__name__) from None

    async def _connect(self) -> None:
        options = self._options
        client = Client(options.url, timeout=_TIMEOUT_S, watchdog_intervall=_TIMEOUT_S)
        client.name = client.description = "alarmcast-edge"
        if options.username is not None:
            client.set_user(options.username)
            client.set_password(self._context.password or "")
        if options.security_policy != "None" and options.server_certificate is not None:
            await make_secure(
                client,
                policy=options.security_policy,
                mode=options.security_mode,
                certificate=options.certificate,
                private_key=options.private_key,
                server_certificate=options.server_certificate,
            )
        if options.user_certificate is not None and options.user_private_key is not None:
            key_password = self._context.password
            await log_in_with_certificate(client, options.user_certificate, options.user_private_key, key_password)
        await client.connect()
        self._client = client
        self._waiting.clear()
        self._missing.clear()
        self._names.clear()
        self._handles.clear()
        self._members.clear()
        self._subscription = await client.create_subscription(options.publish_ms, self)
        self._number = self._subscription.subscription_id
        if options.mode == "conditions":
            await self._subscribe_conditions(client, self._subscription)
        elif options.mode == "packml":
            await client.load_data_type_definitions()
            await self._subscribe(client, await self._packml_nodes(client))
        else:
            await self._subscribe(client, {node: node for node in self._signals})

    async def _subscribe_conditions(self, client: Client, subscription: Subscription) -> None:
        node = self._options.node or ua.ObjectIds.Server
        self._conditions.start()
        await subscription.subscribe_events(node, evfilter=EVENT_FILTER, queuesize=_QUEUE_SIZE)
        kind = client.get_node(ua.ObjectIds.ConditionType)
        refresh = ua.NodeId(ua.ObjectIds.ConditionType_ConditionRefresh)
        try:
            await kind.call_method(refresh, ua.Variant(subscription.subscription_id, ua.VariantType.UInt32))
        except ua.UaStatusCodeError as error:
            message = f"ConditionRefresh failed ({type(error).__name__}): alarms that are active now are unknown"
            self._missing["conditions"] = message

    async def _packml_nodes(self, client: Client) -> dict[str, str]:
        arrays = set(self._options.arrays)
        found = await self._members.find(client, self._options.node or "", arrays | {_STOP_REASON})
        for name in arrays - {self._members.array_of(name) for name in found.values()}:
            self._missing[name] = f"{self._options.node} has no child {name}"
        return found

    async def _subscribe(self, client: Client, nodes: dict[str, str]) -> None:
        """Monitor nodes; those that the server does not know are tried again later."""
        if self._subscription is None or not nodes:
            return
        parsed = [client.get_node(node) for node in nodes]
        self._names |= {node.nodeid: name for node, name in zip(parsed, nodes.values(), strict=True)}
        results = await self._subscription.subscribe_data_change(
            parsed, queuesize=_QUEUE_SIZE, sampling_interval=self._options.publish_ms / 2
        )
        for name, result in zip(nodes.values(), results, strict=True):
            if isinstance(result, ua.StatusCode):
                self._missing[name] = f"the server answers {result.name}"
            else:
                self._handles[name] = result

    async def _check_nodes(self, client: Client, subscription: Subscription) -> None:
        """Find nodes that have disappeared, which not every server reports, and try missing ones again."""
        self._check_at = time.monotonic() + _CHECK_NODES_S
        if self._missing:
            await self._subscribe_missing(client, subscription)
        nodes = [node for node, name in self._names.items() if name not in self._missing]
        for node, found in zip(nodes, await client.uaclient.read_attributes(nodes, _NODE_CLASS), strict=True):
            if found.StatusCode is not None and found.StatusCode.value == ua.StatusCodes.BadNodeIdUnknown:
                self._missing[self._names[node]] = f"the server answers {found.StatusCode.name}"

    async def _subscribe_missing(self, client: Client, subscription: Subscription) -> None:
        """Monitor nodes again that the server did not know, or no longer knew."""
        missing = set(self._missing)
        self._missing.clear()
        packml = self._options.mode == "packml"
        nodes = await self._packml_nodes(client) if packml else {node: node for node in self._signals}
        for name in missing & set(self._handles):
            with suppress(ua.UaError):  # the server may have removed it
                await subscription.unsubscribe(self._handles.pop(name))
        await self._subscribe(client, {node: name for node, name in nodes.items() if name in missing})

    async def _collect(self) -> list[Reading]:
        client, subscription = self._client, self._subscription
        is_connected = client is not None and client.state is UaClientState.CONNECTED
        if client is None or subscription is None or not (is_connected or self._waiting):
            raise Unreachable("the connection was lost")
        if subscription.subscription_id != self._number or len(self._waiting) > _MAX_WAITING:
            raise Unreachable("the server has ended the subscription, or sends more than can be stored")
        missing = [Reading(signal, problem=problem) for signal, problem in self._missing.items()]
        if is_connected and self._names and time.monotonic() >= self._check_at:
            await self._check_nodes(client, subscription)
        if not self._waiting:
            self._arrived.clear()
            try:
                await asyncio.wait_for(self._arrived.wait(), _WAIT_S)
            except TimeoutError:
                return missing
        readings = missing
        if self._options.mode == "packml":
            self._waiting = deque(sorted(self._waiting, key=self._order))
        while self._waiting and len(readings) < _MAX_READINGS:
            if isinstance(self._waiting[0], Unreachable) and readings:
                break  # what was received before is stored first
            readings.extend(self._read(self._waiting.popleft()))
        return readings

    def _read(self, notification: Any) -> list[Reading]:
        if isinstance(notification, Unreachable):
            raise notification
        if not isinstance(notification, tuple):
            return self._conditions.read(notification, self._moment)
        node, data = notification
        name, status = self._names[node], data.StatusCode
        at = self._moment(data.SourceTimestamp or data.ServerTimestamp)
        lost = None
        if status is not None and status.value & _OVERFLOW == _OVERFLOW:
            lost = f"The server lost changes of {name}: its queue was full. Shorten publish_ms."
        if status is not None and not status.is_good():
            problem = f"the server answers {status.name}"
            if status.value == ua.StatusCodes.BadNodeIdUnknown:
                self._missing[name] = problem
            return [Reading(name, at=at, problem=problem)]
        try:
            signal = self._signals.get(name)
            active = tag_alarms(signal, data.Value) if signal else self._members.alarms(name, data.Value.Value)
        except Unreadable as error:
            return [Reading(self._members.array_of(name), at=at, problem=str(error))]
        return [] if active is None else [Reading(self._members.array_of(name), active, at, lost=lost)]

    def _order(self, notification: Any) -> tuple[float, int]:
        """Order changes by their time, and members of an element as they depend on each other."""
        if not isinstance(notification, tuple):
            return float("inf"), 0
        node, data = notification
        at = data.SourceTimestamp
        return (at.timestamp() if at else 0.0), self._members.rank(self._names[node])

    def _moment(self, at: datetime | None) -> datetime:
        """Return the source's time, or the agent's if there is none or it cannot be right."""
        now = self._context.now()
        if at is None or self._options.timestamps == "agent":
            return now
        at = at if at.tzinfo else at.replace(tzinfo=UTC)
        return at if at.year >= 2000 and at <= now + _MAX_FUTURE else now  # noqa: PLR2004

    async def _skew(self) -> timedelta:
        if self._client is None:
            raise Unreachable("not connected")
        now: datetime = await self._client.get_node(ua.ObjectIds.Server_ServerStatus_CurrentTime).read_value()
        return (now if now.tzinfo else now.replace(tzinfo=UTC)) - datetime.now(UTC)


async def _cancel_tasks() -> None:
    tasks = asyncio.all_tasks() - {asyncio.current_task()}
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def build(options: dict[str, Any], context: Context) -> Monitored:
    """Return the source of the table ``[opcua]``."""
    logging.getLogger("asyncua").setLevel(logging.CRITICAL)  # its errors are reported as findings and gaps
    parsed = parse_options(OpcuaOptions, options, "opcua")
    stops = (_STOP_REASON,) if parsed.mode == "packml" and _STOP_REASON not in parsed.arrays else ()
    return Monitored(OpcuaDevice(parsed, context), context, debounce=parsed.debounce_seconds, stops=stops)
