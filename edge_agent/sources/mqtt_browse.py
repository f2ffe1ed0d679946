"""Watch the plant's broker for Sparkplug devices and for JSON messages that look like alarms."""

import json
import re
import time
from collections import defaultdict
from collections.abc import Iterator
from queue import Empty, Queue
from typing import Any, NamedTuple

import paho.mqtt.client as mqtt
from paho.mqtt.enums import CallbackAPIVersion

from edge_agent.sources.discovery import ALARM, MAX_SIGNALS, Access, Proposal, connection_lines, toml_text
from edge_agent.sources.plant_broker import KEEPALIVE_S, PlantBrokerOptions
from edge_agent.sources.signals import Unreachable
from wire.broker_check import tls_context

try:
    from edge_agent.sources.sparkplug_payload import BOOLEAN, Payload, rebirth_request
except ModuleNotFoundError:  # the extra sparkplug is not installed
    Payload = None

_CONNECT_S = 10.0
_MAX_TOPICS = 2000
_MAX_LISTED = 50
_FIELDS = {
    "code": re.compile(
        r"code|alarm|alarm_?(code|id|number|no|name)|fault(_?code)?|number|nr|id|name", re.IGNORECASE
    ),
    "time": re.compile(r"ts|t|time|timestamp|date_?time|at|event_?time", re.IGNORECASE),
    "text": re.compile(r"text|message|msg|description", re.IGNORECASE),
    "severity": re.compile(r"severity|priority", re.IGNORECASE),
    "state": re.compile(r"active|state|status", re.IGNORECASE),
}
_HINT = (
    "no message looks like an alarm; trigger an alarm while the command runs, watch longer with --seconds, "
    "or see docs/connect/mqtt.md"
)


_Received = Queue[mqtt.MQTTMessage | Unreachable | None]  # None: the broker has accepted the subscription


class _Metric(NamedTuple):
    device: str
    name: str
    is_flag: bool

    @property
    def title(self) -> str:
        return f"{self.device}/{self.name}" if self.device else self.name


class _Layout(NamedTuple):
    """The fields of a JSON message, by their options."""

    fields: tuple[tuple[str, str], ...]


class _Watch:
    """What was received: metrics of births by group and node, and topics and codes of JSON by layout."""

    def __init__(self, client: mqtt.Client) -> None:
        self._client = client
        self.nodes: dict[tuple[str, str], set[_Metric]] = defaultdict(set)
        self._asked: set[tuple[str, str]] = set()
        self.topics: dict[_Layout, set[str]] = defaultdict(set)
        self.codes: dict[_Layout, set[str]] = defaultdict(set)
        self.messages = 0

    def take(self, message: mqtt.MQTTMessage) -> None:
        self.messages += 1
        parts = message.topic.split("/")
        if parts[0] == "spBv1.0":
            if Payload is not None and len(parts) >= 4 and parts[2] in ("NBIRTH", "DBIRTH", "NDATA", "DDATA"):  # noqa: PLR2004
                self._take_sparkplug(parts, bytes(message.payload))
            return
        try:
            body = json.loads(message.payload)
        except (ValueError, RecursionError):
            return
        layout = _layout(body, message.topic)
        if layout is not None and len(self.topics[layout]) < _MAX_TOPICS:
            self.topics[layout].add(message.topic)
            self.codes[layout] |= set(_codes(body, layout))

    def _take_sparkplug(self, parts: list[str], content: bytes) -> None:
        node, device = (parts[1], parts[3]), "/".join(parts[4:])
        if parts[2].endswith("DATA"):
            if node not in self.nodes and node not in self._asked:
                self._asked.add(node)
                command = rebirth_request(round(time.time() * 1000))
                self._client.publish(f"spBv1.0/{node[0]}/NCMD/{node[1]}", command)
            return
        payload = Payload()
        try:
            payload.ParseFromString(content)
        except Exception:  # noqa: BLE001 - the library raises errors of many kinds
            return
        self.nodes[node] |= {_Metric(device, one.name, one.datatype == BOOLEAN) for one in payload.metrics}


def propose(access: Access, seconds: float) -> Proposal:
    """Propose signals of a Sparkplug edge node, else fields of JSON messages."""
    watch = _watch(access, seconds)
    alarms = {
        node: sorted(metric for metric in metrics if ALARM.search(metric.title))
        for node, metrics in watch.nodes.items()
    }
    alarms = {node: metrics for node, metrics in alarms.items() if metrics}
    json_topics = sum(map(len, watch.topics.values()))
    summary = (
        f"{watch.messages} messages in {seconds:g} s: {len(watch.nodes)} Sparkplug edge nodes, "
        f"{len(alarms)} of them with metrics that look like alarms, {json_topics} JSON topics that do"
    )
    if alarms:
        return _sparkplug(access, summary, alarms)
    if json_topics:
        return _json(access, summary, watch)
    return Proposal("mqtt", summary, [], hint=_HINT)


def _sparkplug(access: Access, summary: str, alarms: dict[tuple[str, str], list[_Metric]]) -> Proposal:
    (group, node), metrics = max(alarms.items(), key=lambda item: len(item[1]))
    lines = [*connection_lines(access), f"group = {toml_text(group)}", f"edge_node = {toml_text(node)}"]
    lines += ['host_id = "alarmcast-machine-1"  # one per agent']
    lines += [f"# another edge node: {one[0]}/{one[1]}" for one in sorted(alarms) if one != (group, node)]
    for metric in metrics[:MAX_SIGNALS]:
        meaning = 'as = "flag"' if metric.is_flag else 'as = "code"  # bits: one alarm per bit'
        lines += ["", "[[sparkplug.signals]]", f"device = {toml_text(metric.device)}"]
        lines += [f"metric = {toml_text(metric.name)}", meaning]
    return Proposal("sparkplug", summary, lines, [one.title for one in metrics[:MAX_SIGNALS] if one.is_flag])


def _json(access: Access, summary: str, watch: _Watch) -> Proposal:
    layout, topics = max(watch.topics.items(), key=lambda item: len(item[1]))
    listed = sorted(topics)
    lines = [*connection_lines(access), 'client_id = "alarmcast-machine-1"  # one per agent', "topics = ["]
    lines += [f"  {toml_text(topic)}," for topic in listed[:_MAX_LISTED]]
    lines += ["]", *(f"{option} = {toml_text(path)}" for option, path in layout.fields)]
    if len(listed) > _MAX_LISTED:
        lines.append(f"# {len(listed) - _MAX_LISTED} more topics; write a topic with + or #")
    codes = sorted(watch.codes[layout])
    lines.append(f"# codes seen: {', '.join(codes[:20])}")
    others = sorted(topic for other, found in watch.topics.items() if other != layout for topic in found)
    lines += [f"# with other fields: {topic}" for topic in others[:_MAX_LISTED]]
    return Proposal("mqtt", summary, lines, [code for code in codes if not code.isdigit()][:MAX_SIGNALS])


def _watch(access: Access, seconds: float) -> _Watch:
    options = PlantBrokerOptions(url=access.url, username=access.username, tls_ca=access.tls_ca)
    broker = options.broker(access.password)
    received: _Received = Queue()
    client = mqtt.Client(CallbackAPIVersion.VERSION2, reconnect_on_failure=False)

    def on_connect(client: mqtt.Client, _data: Any, _flags: Any, reason: Any, _props: Any) -> None:
        if reason.is_failure:
            received.put(Unreachable(f"the broker refuses the connection: {reason}"))
        else:
            client.subscribe("#", 0)

    def on_subscribe(_client: mqtt.Client, _data: Any, _mid: int, reasons: list[Any], _props: Any) -> None:
        refused = any(reason.is_failure for reason in reasons)
        received.put(Unreachable("the broker does not permit to subscribe to #") if refused else None)

    client.on_connect, client.on_subscribe = on_connect, on_subscribe
    client.on_message = lambda _client, _data, message: received.put(message)
    client.on_disconnect = lambda *_: received.put(Unreachable("the connection was lost"))
    if broker.username is not None:
        client.username_pw_set(broker.username, broker.password)
    try:
        if broker.tls:
            client.tls_set_context(tls_context(broker))
        client.connect(broker.host, broker.port, KEEPALIVE_S)
    except (OSError, ValueError) as error:
        raise Unreachable(f"no connection: {error}") from None
    client.loop_start()
    try:
        return _collect(client, received, seconds)
    finally:
        client.on_disconnect = None
        client.disconnect()
        client.loop_stop()


def _collect(client: mqtt.Client, received: _Received, seconds: float) -> _Watch:
    watch, until = _Watch(client), time.monotonic() + _CONNECT_S
    is_subscribed = False
    while (left := until - time.monotonic()) > 0:
        try:
            message = received.get(timeout=left)
        except Empty:
            break
        if isinstance(message, Unreachable):
            raise message
        if message is None:
            is_subscribed, until = True, time.monotonic() + seconds
        else:
            watch.take(message)
    if not is_subscribed:
        raise Unreachable("the broker does not answer")
    return watch


def _leaves(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from _leaves(inner, f"{path}.{name}".lstrip("."))
    elif not isinstance(value, list):
        yield path, value


def _items(body: Any) -> tuple[str | None, Any]:
    """Return the path of a list of alarms and its first one, else the body itself."""
    if isinstance(body, list):
        return None, body[0] if body else None
    if isinstance(body, dict):
        for name, value in body.items():
            if isinstance(value, list) and value and isinstance(value[0], dict):
                return name, value[0]
    return None, body


def _layout(body: Any, topic: str) -> _Layout | None:
    """Return the fields of a message that looks like an alarm."""
    path, item = _items(body)
    if not isinstance(item, dict):
        return None
    leaves = [name for name, _ in _leaves(item)]
    if not ALARM.search(" ".join([topic, path or "", *leaves])):
        return None
    fields: dict[str, str] = {} if path is None else {"items": path}
    for option, pattern in _FIELDS.items():
        found = [leaf for leaf in leaves if pattern.fullmatch(leaf.rpartition(".")[2])]
        best = next((leaf for leaf in found if ALARM.search(leaf)), found[0] if found else None)
        if best is not None and best not in fields.values():
            fields[option] = best
    if "code" not in fields and "state" not in fields:
        return None
    fields.setdefault("code", f"$topic.{topic.count('/')}")
    return _Layout(tuple(fields.items()))


def _codes(body: Any, layout: _Layout) -> Iterator[str]:
    path = dict(layout.fields)["code"]
    _, item = _items(body)
    for name, value in _leaves(item):
        if name == path and value is not None and not isinstance(value, bool):
            yield str(value)
