"""Find what looks like alarms on an OPC UA server."""

import asyncio
import logging
from collections import deque
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from asyncua import Client, ua

from edge_agent.sources.discovery import ALARM, MAX_SIGNALS, Access, Proposal, connection_lines, toml_text
from edge_agent.sources.opcua_conditions import EVENT_FILTER
from edge_agent.sources.signals import Unreachable

_MAX_NODES, _MAX_DEPTH = 5000, 10
_ARRAYS = {"Alarm", "Warning"}
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


def propose(access: Access, seconds: float) -> Proposal:
    """Propose the best that is found: conditions, else PackML, else tags."""
    findings = browse(access, seconds)
    conditions = "no conditions" if findings.conditions is None else f"{len(findings.conditions)} conditions"
    summary = (
        f"{findings.browsed} nodes browsed: {conditions}, {len(findings.packml)} PackML folders, "
        f"{len(findings.tags)} tags that look like alarms"
    )
    if not (findings.conditions or findings.packml or findings.tags):
        hint = "nothing looks like an alarm; browse the server with UaExpert and see docs/connect/opcua.md"
        return Proposal("opcua", summary, [], hint=hint)
    lines, names, prefix = connection_lines(access), [], "# "
    if findings.conditions:
        names = sorted(findings.conditions)
        lines += ['mode = "conditions"', *(f"# {name}" for name in names)]
    elif findings.packml:
        (node, arrays), *others = findings.packml
        lines += [
            'mode = "packml"',
            f"node = {toml_text(node)}",
            f"arrays = [{', '.join(map(toml_text, arrays))}]",
        ]
        lines += [f"# another machine: node = {toml_text(other)}" for other, _ in others]
    else:
        names = [tag.path[:200] for tag in findings.tags[:MAX_SIGNALS] if tag.is_flag]
        lines, prefix = [*lines, 'mode = "tags"'], ""
    for tag in findings.tags[:MAX_SIGNALS]:
        lines += ["", *(prefix + line for line in _signal(tag))]
    return Proposal("opcua", summary, lines, names)


def _signal(tag: FoundTag) -> list[str]:
    if tag.is_flag:
        meaning = ['as = "flag"', f"name = {toml_text(tag.path[:200])}"]
    else:
        meaning = ['as = "code"  # bits: one alarm per bit', f"# {tag.path}"]
    return ["[[opcua.signals]]", f"node = {toml_text(tag.node)}", *meaning]


def browse(access: Access, seconds: float) -> Findings:
    """Return what is found; conditions are watched for ``seconds``."""
    logging.getLogger("asyncua").setLevel(logging.CRITICAL)
    try:
        return asyncio.run(_browse(access, seconds))
    except Exception as error:  # noqa: BLE001 - the library raises errors of many kinds
        raise Unreachable(str(error) or type(error).__name__) from None


async def _browse(access: Access, seconds: float) -> Findings:
    client = Client(access.url, timeout=5)
    if access.username is not None:
        client.set_user(access.username)
        client.set_password(access.password or "")
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
            findings.packml.append((node.nodeid.to_string(), sorted(names & _ARRAYS)))
            continue
        for child in children:
            if child.NodeId.NamespaceIndex == 0 or child.NodeId in seen:
                continue  # of the standard, not of the machine
            seen.add(child.NodeId)
            below = f"{path}.{child.BrowseName.Name}".lstrip(".")
            if child.NodeClass == ua.NodeClass.Variable and ALARM.search(below):
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
