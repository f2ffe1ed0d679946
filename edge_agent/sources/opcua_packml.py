"""PackML arrays of alarms: one variable with structures, or a node for each member of each element."""

from typing import Any

from asyncua import Client, ua

from edge_agent.sources.edges import Described
from edge_agent.sources.opcua_values import packml_alarms

_MEMBERS = ("ID", "Message", "Trigger")  # in the order in which they are applied


class _Element:
    """The members of an element; without a node for Trigger it is active while its ID is not 0."""

    def __init__(self, number: Any, trigger: Any, message: Any) -> None:
        self.ID, self.Trigger, self.Message = number, trigger, message


class PackmlMembers:
    """Arrays whose members are separate nodes; a reading of an array needs all of them."""

    def __init__(self) -> None:
        self._places: dict[str, tuple[str, str, str]] = {}  # array, element and member by the name of a node
        self._values: dict[str, Any] = {}

    def clear(self) -> None:
        """Forget all nodes and values."""
        self._places.clear()
        self._values.clear()

    async def find(self, client: Client, folder: str, arrays: set[str]) -> dict[str, str]:
        """Return the nodes to monitor by node id: the name of an array, or of a member of it."""
        found: dict[str, str] = {}
        for child in await client.get_node(folder).get_children():
            array = (await child.read_browse_name()).Name
            if array in arrays:
                members = await self._members(child, array)
                found |= members or {child.nodeid.to_string(): array}
        return found

    async def _members(self, array: Any, name: str) -> dict[str, str]:
        elements = {"": array} | {
            (await child.read_browse_name()).Name: child
            for child in await array.get_children()
            if await child.read_node_class() in (ua.NodeClass.Object, ua.NodeClass.Variable)
        }
        found: dict[str, str] = {}
        for element, node in elements.items():
            members = {(await child.read_browse_name()).Name: child for child in await node.get_children()}
            for member in _MEMBERS if "ID" in members else ():
                if member in members:
                    full = f"{name}.{element}.{member}" if element else f"{name}.{member}"
                    self._places[full] = (name, element, member)
                    found[members[member].nodeid.to_string()] = full
        return found

    def array_of(self, name: str) -> str:
        """Return the array of a node's name."""
        return self._places[name][0] if name in self._places else name

    def rank(self, name: str) -> int:
        """Return in which order nodes that change at the same time are applied: an ID before its Trigger."""
        return _MEMBERS.index(self._places[name][2]) if name in self._places else 0

    def alarms(self, name: str, value: Any) -> dict[str, Described] | None:
        """Return the active alarms after a change, None as long as members of the array are unknown."""
        if name not in self._places:
            return packml_alarms(value)
        array = self._places[name][0]
        self._values[name] = value
        names = [other for other, place in self._places.items() if place[0] == array]
        if any(other not in self._values for other in names):
            return None
        elements: dict[str, dict[str, Any]] = {}
        for other in names:
            _, element, member = self._places[other]
            elements.setdefault(element, {})[member] = self._values[other]
        return packml_alarms(
            [_Element(one["ID"], one.get("Trigger", True), one.get("Message", "")) for one in elements.values()]
        )
