"""Find what looks like alarms on an OPC UA server."""

import asyncio
import logging
import re
from collections import deque
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from asyncua import Client, ua

from edge_agent.sources.opcua_conditions import EVENT_FILTER
from edge_agent.sources.signals import Unreachable

_MAX_NODES, _MAX_DEPTH = 5000, 10
_ALARM = re.compile(r"alarm|fault|error|warn|trip|stör|stoer|fehler|meldung|allarm|guasto|défaut", re.IGNORECASE)
_ARRAYS = {"Alarm", "Warning", "StopReason"}
_WHOLE = {
    ua.VariantType.Byte,
    ua.VariantType.Int16,
    ua.VariantType.UInt16,
    ua.VariantType.Int32,
    ua.VariantType.UInt32,
}


class FoundTag(NamedTuple):
    """A variable that may be an alarm: its node id, its path, and whether it is Boolean."""

    node: str
    path: str
    is_flag: bool


@dataclass
class Findings:
    """What a server has; ``conditions`` are names of conditions that it sent, None if it has no conditions."""

    conditions: set[str] | None = None
    packml: list[tuple[str, list[str]]] = field(default_factory=list)
    tags: list[FoundTag] = field(default_factory=list)
    browsed: int = 0


def browse(url: str, *, username: str | None, password: str | None, seconds: float) -> Findings:
    """Return what is found; conditions are watched for ``seconds``."""
    logging.getLogger("asyncua").setLevel(logging.CRITICAL)
    try:
        return asyncio.run(_browse(url, username, password, seconds))
    except Exception as error:  # noqa: BLE001 - the library raises errors of many kinds
        raise Unreachable(str(error) or type(error).__name__) from None


async def _browse(url: str, username: str | None, password: str | None, seconds: float) -> Findings:
    client = Client(url, timeout=5)
    if username is not None:
        client.set_user(username)
        client.set_password(password or "")
    async with client:
        findings = Findings()
        await _walk(client, findings)
        await _watch(client, findings, seconds)
        return findings


async def _walk(client: Client, findings: Findings) -> None:
    waiting: deque[tuple[Any, str, int]] = deque([(client.nodes.objects, "", 0)])
    seen: set[Any] = set()
    while waiting and findings.browsed < _MAX_NODES:
        node, path, depth = waiting.popleft()
        children = await node.get_children_descriptions()
        findings.browsed += len(children)
        names = {child.BrowseName.Name for child in children}
        if path.endswith("Admin") and names & _ARRAYS:
            findings.packml.append((node.nodeid.to_string(), sorted(names & _ARRAYS - {"StopReason"})))
            continue
        for child in children:
            if child.NodeId.NamespaceIndex == 0 or child.NodeId in seen:
                continue  # of the standard, not of the machine
            seen.add(child.NodeId)
            below = f"{path}.{child.BrowseName.Name}".lstrip(".")
            if child.NodeClass == ua.NodeClass.Variable and _ALARM.search(below):
                await _add_tag(client, child.NodeId, below, findings)
            elif child.NodeClass in (ua.NodeClass.Object, ua.NodeClass.Variable) and depth < _MAX_DEPTH:
                waiting.append((client.get_node(child.NodeId), below, depth + 1))


async def _add_tag(client: Client, number: Any, path: str, findings: Findings) -> None:
    try:
        kind = await client.get_node(number).read_data_type_as_variant_type()
    except ua.UaError:
        return
    if kind == ua.VariantType.Boolean or kind in _WHOLE:
        findings.tags.append(FoundTag(number.to_string(), path, kind == ua.VariantType.Boolean))


class _Events:
    def __init__(self) -> None:
        self.names: set[str] = set()

    def event_notification(self, event: Any) -> None:
        if event.NodeId is not None and vars(event).get("ActiveState/Id") is not None:
            self.names.add(".".join(part for part in (event.SourceName, event.ConditionName) if part))


async def _watch(client: Client, findings: Findings, seconds: float) -> None:
    events = _Events()
    subscription = await client.create_subscription(100, events)
    try:
        await subscription.subscribe_events(ua.ObjectIds.Server, evfilter=EVENT_FILTER, queuesize=1000)
        refresh = ua.NodeId(ua.ObjectIds.ConditionType_ConditionRefresh)
        argument = ua.Variant(subscription.subscription_id, ua.VariantType.UInt32)
        await client.get_node(ua.ObjectIds.ConditionType).call_method(refresh, argument)
    except ua.UaError:
        return  # the server has no conditions
    await asyncio.sleep(seconds)
    findings.conditions = events.names
