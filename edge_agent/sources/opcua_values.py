"""Values of OPC UA nodes as active alarms."""

from typing import Any

from asyncua import ua
from pydantic import field_validator

from edge_agent.sources.edges import UNDESCRIBED, Described
from edge_agent.sources.signals import Signal, Unreadable

_WIDTHS = {
    ua.VariantType.SByte: 8,
    ua.VariantType.Byte: 8,
    ua.VariantType.Int16: 16,
    ua.VariantType.UInt16: 16,
    ua.VariantType.Int32: 32,
    ua.VariantType.UInt32: 32,
    ua.VariantType.Int64: 64,
    ua.VariantType.UInt64: 64,
}


class TagSignal(Signal):
    """A variable, by its node id: ``ns=3;s="Alarms"."word"`` or ``ns=2;i=1001``."""

    node: str

    @field_validator("node")
    @classmethod
    def _is_node_id(cls, text: str) -> str:
        try:
            ua.NodeId.from_string(text)
        except (ua.UaError, ValueError):
            raise ValueError(f"{text!r} is not a node id like ns=2;s=Alarms.word or ns=2;i=1001") from None
        return text


def tag_alarms(signal: TagSignal, variant: ua.Variant) -> dict[str, Described]:
    """Return the active alarms of a tag's value, or raise :class:`Unreadable`."""
    values = variant.Value if isinstance(variant.Value, list) else [variant.Value]
    are_bits = all(isinstance(value, bool) for value in values)
    are_numbers = variant.VariantType in _WIDTHS
    if signal.meaning == "code" and variant.VariantType == ua.VariantType.String:
        return {value.strip(): UNDESCRIBED for value in values if value and value.strip()}
    if are_numbers:
        active = signal.active_values(values, _WIDTHS[variant.VariantType], signal.node)
        return dict.fromkeys(active, UNDESCRIBED)
    if signal.meaning != "code" and are_bits:
        return dict.fromkeys(signal.active_bits(values, signal.node), UNDESCRIBED)
    wanted = {"flag": "a Boolean", "bits": "a whole number", "code": "a whole number or a text"}[signal.meaning]
    raise Unreadable(f"its type is {variant.VariantType.name}; as = {signal.meaning!r} needs {wanted}")


def packml_alarms(value: Any) -> dict[str, Described]:
    """Return the active alarms of a PackML array; an element without Trigger is active if its ID is not 0."""
    active: dict[str, Described] = {}
    for element in value if isinstance(value, list) else [value]:
        number = getattr(element, "ID", None)
        if isinstance(number, bool) or not isinstance(number, int) or not 0 <= number < 2**31:
            raise Unreadable("it is not a PackML alarm: there is no ID that is a whole number from 0 on")
        if number and getattr(element, "Trigger", True):
            active[str(number)] = Described(str(getattr(element, "Message", "") or ""))
    return active
