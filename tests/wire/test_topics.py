"""Topics say who speaks; nothing else is believed."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wire.errors import TopicRejected
from wire.identity import MachineId
from wire.topics import Channel, every_machine, parse_topic, topic

ids = st.from_regex(r"[a-z0-9][a-z0-9_-]{0,62}", fullmatch=True)


@given(ids, ids, st.sampled_from(Channel))
def test_what_is_built_is_parsed_back(site: str, machine: str, channel: Channel) -> None:
    parsed = parse_topic(topic(MachineId(site, machine), channel))
    assert parsed == (MachineId(site, machine), channel)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "/",
        "alarmcast/v1/padova/filler-1",
        "alarmcast/v1/padova/filler-1/events/more",
        "alarmcast/v2/padova/filler-1/events",
        "other/v1/padova/filler-1/events",
        "alarmcast/v1/Padova/filler-1/events",
        "alarmcast/v1/padova/-filler/events",
        "alarmcast/v1/padova/filler-1\n/events",
        "alarmcast/v1/padova//events",
        f"alarmcast/v1/padova/{'x' * 64}/events",
        "alarmcast/v1/+/+/events",
        "alarmcast/v1/padova/filler-1/other",
        "$SYS/broker/uptime",
    ],
)
def test_any_other_topic_is_rejected(text: str) -> None:
    with pytest.raises(TopicRejected):
        parse_topic(text)


def test_the_filter_of_a_channel_matches_every_machine() -> None:
    assert every_machine(Channel.EVENTS) == "alarmcast/v1/+/+/events"


@pytest.mark.parametrize("text", ["padova", "padova/", "/filler", "Padova/filler", "a/b/c", "padova/filler 1"])
def test_a_machine_name_that_cannot_be_is_refused_with_a_sentence(text: str) -> None:
    with pytest.raises(ValueError, match="write site/machine"):
        MachineId.parse(text)
