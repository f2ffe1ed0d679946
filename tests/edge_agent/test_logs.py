"""The agent's log: one line each, nobody else's lines, no password."""

import io
import logging
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edge_agent.logs import OneLine, set_up_logs


@pytest.fixture
def root() -> Iterator[logging.Logger]:
    logger = logging.getLogger()
    handlers, level = logger.handlers[:], logger.level
    logger.handlers[:] = []
    yield logger
    logger.handlers[:], logger.level = handlers, level


@given(st.text())
def test_every_record_is_one_printable_line_its_trace_included(words: str) -> None:
    error = ValueError(words)
    info = (ValueError, error, None)
    record = logging.LogRecord("edge_agent.x", logging.ERROR, __file__, 1, "skipped %s", (words,), info)
    assert OneLine().format(record).isprintable()


def test_the_password_is_not_written_once_it_is_known(root: logging.Logger) -> None:
    stream = io.StringIO()
    set_up_logs(secrets=["open-sesame", None], stream=stream)
    logging.getLogger("edge_agent.mqtt_connection").error("refused: %s", "user=m password=open-sesame")
    assert root.handlers
    assert "open-sesame" not in stream.getvalue()
    assert stream.getvalue().endswith(" ERROR refused: user=m password=***\n")


def test_setting_up_twice_says_everything_once(root: logging.Logger) -> None:
    first, second = io.StringIO(), io.StringIO()
    set_up_logs(stream=first)
    set_up_logs(stream=second)
    logging.getLogger("edge_agent.mqtt_connection").info("connected")
    assert len(root.handlers) == 1
    assert (first.getvalue(), second.getvalue().count("\n")) == ("", 1)
