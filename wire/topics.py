"""Topics of the contract, built and parsed in this one place."""

from enum import StrEnum
from typing import NamedTuple

from wire.errors import TopicRejected
from wire.identity import MachineId, is_identifier

PREFIX = "alarmcast/v1"
_LEVELS = 5


class Channel(StrEnum):
    """What a topic carries."""

    EVENTS = "events"
    ACKS = "acks"
    STATE = "state"
    FORECAST = "forecast"


# What an agent may say and hear, of its own machine and of no other. It hears its own state to find out whether
# another agent speaks in its name; the forecast is there for an HMI beside the machine.
AGENT_SENDS = (Channel.EVENTS, Channel.STATE)
AGENT_HEARS = (Channel.ACKS, Channel.FORECAST, Channel.STATE)
AGENTS = "alarmcast-edge/"  # what the names of all agents at a broker begin with


def agent_name(machine: MachineId) -> str:
    """Return the client id of a machine's agent, which is its user name too; no id contains a slash."""
    return f"{AGENTS}{machine}"


class Topic(NamedTuple):
    """A parsed topic: whose it is, and what it carries."""

    machine: MachineId
    channel: Channel


def topic(machine: MachineId, channel: Channel) -> str:
    """Return the topic on which ``channel`` of ``machine`` travels."""
    return f"{PREFIX}/{machine.site}/{machine.machine}/{channel.value}"


def every_machine(channel: Channel) -> str:
    """Return the filter that matches ``channel`` of every machine of every site."""
    return f"{PREFIX}/+/+/{channel.value}"


# Ingesters of one service each get a share of the events (MQTT 5); they never see retained messages by it.
SHARED_EVENTS = f"$share/alarmcast/{every_machine(Channel.EVENTS)}"


def parse_topic(text: str) -> Topic:
    """Read a topic; raise :class:`TopicRejected` for anything the contract does not name."""
    parts = text.split("/")
    if parts[:2] != PREFIX.split("/") or len(parts) != _LEVELS:
        raise TopicRejected("topic", f"{text[:200]!r} is not {PREFIX}/site/machine/channel")
    site, machine, channel = parts[2:]
    if not (is_identifier(site) and is_identifier(machine)):
        raise TopicRejected("topic", f"{text[:200]!r} names an impossible site or machine")
    try:
        return Topic(MachineId(site, machine), Channel(channel))
    except ValueError:
        raise TopicRejected("topic", f"{text[:200]!r} names no channel of the contract") from None
