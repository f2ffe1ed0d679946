"""Server-sent events come out the same however their bytes are cut."""

from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from alarmcast.events import EventReader, ServerEvent

STREAM = (
    "retry: 2000\n\n: a comment\n\nevent: alarm\nid: 7\ndata: Folie gerissen \u2028 é\n\n"
    "data:first\r\ndata: second\r\n\r\ndata\r\revent: nothing\n\nunknown: x\ndata: {}\n\n"
    "event: unfinished\ndata: x"
).encode()
TOLD = [
    ServerEvent("alarm", "Folie gerissen \u2028 é", "7"),
    ServerEvent("message", "first\nsecond", "7"),
    ServerEvent("message", "", "7"),
    ServerEvent("message", "{}", "7"),
]


def read(chunks: list[bytes]) -> list[ServerEvent]:
    reader = EventReader()
    return [event for chunk in chunks for event in reader(chunk)]


def test_names_data_ids_comments_and_all_line_ends_are_read() -> None:
    assert read([STREAM]) == TOLD


@example([85, 85])  # an empty piece between a return and its line feed
@given(st.lists(st.integers(0, len(STREAM)), max_size=20))
def test_the_cuts_between_bytes_do_not_matter(cuts: list[int]) -> None:
    edges = [0, *sorted(cuts), len(STREAM)]
    assert read([STREAM[start:end] for start, end in pairwise(edges)]) == TOLD


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
def test_an_event_is_told_as_soon_as_it_is_whole(end: bytes) -> None:
    assert list(EventReader()(b"data: now" + end + end)) == [ServerEvent("message", "now")]
