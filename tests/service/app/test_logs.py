"""The log: one line for each thing that happened, whatever it holds, and no secrets in it."""

import io
import json
import logging
import re
import sys
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from structlog.contextvars import bound_contextvars

from service.app.configuration import load_settings
from service.app.logs import formatter, secrets_of, set_up_logs
from service.app.service import Service
from service.app.stores import Stores
from service.settings import LogFormat, LogLevel, Settings
from tests.support.training_worker import Make, says

TEXT_LINE = re.compile(r"\d{4}-\d\d-\d\dT[\d:.]+Z (debug|info|warning|error|critical) +\S")


def written(record: logging.LogRecord, *, as_json: bool, secrets: tuple[str, ...] = ()) -> str:
    return formatter(as_json=as_json, secrets=secrets).format(record)


def record(words: str, *args: object, error: BaseException | None = None, **more: object) -> logging.LogRecord:
    info = (type(error), error, error.__traceback__) if error else None
    made = logging.LogRecord("service.test", logging.WARNING, __file__, 1, words, args, info)
    made.__dict__.update(more)
    return made


@pytest.fixture
def spoken() -> Iterator[io.StringIO]:
    """What the process logs; how it logged before is put back."""
    root = logging.getLogger()
    names = ("", "service", "alarmcast", "wire", "forecasting")
    handlers, levels = root.handlers[:], {name: logging.getLogger(name).level for name in names}
    hooks = threading.excepthook, sys.excepthook
    yield io.StringIO()
    root.handlers[:] = handlers
    threading.excepthook, sys.excepthook = hooks
    logging.captureWarnings(capture=False)
    for name, level in levels.items():
        logging.getLogger(name).setLevel(level)


def lines(stream: io.StringIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


@given(st.text(), st.text())
def test_in_json_every_record_is_one_line_whatever_is_in_it(words: str, value: str) -> None:
    line = written(record("%s", words, topic=value, error=ValueError(words)), as_json=True)
    assert line.isprintable()
    assert json.loads(line).keys() == {"timestamp", "level", "event", "topic", "logger", "exception"}


@given(st.text(), st.text())
def test_in_text_no_line_that_looks_like_ours_is_anybody_elses(words: str, value: str) -> None:
    text = written(record("%s", f"a{words}", topic=value, error=ValueError(words)), as_json=False)
    first, *below = text.split("\n")
    assert TEXT_LINE.match(first)
    assert all(line.startswith("    | ") and line.isprintable() for line in [f"    | {first}", *below])


def test_a_forged_line_stays_inside_its_own() -> None:
    forged = 'x\n2026-11-16T08:00:00Z info    all is well\r{"event":"all is well"}\x1b[2K\u2028\u202e'
    assert written(record("GET %s", forged), as_json=False).count("\n") == 0
    assert json.loads(written(record("GET %s", forged), as_json=True))["event"] == f"GET {forged}"


@pytest.mark.parametrize("as_json", [True, False])
@pytest.mark.parametrize(
    ("words", "secret"),
    [
        ("cannot reach postgresql+psycopg://alarmcast:hunter2@db:5432/alarmcast", "hunter2"),
        ("cannot reach postgresql+psycopg://alarmcast:hun@ter2@db:5432/alarmcast", "ter2"),
        ("Authorization: Bearer ack_0123456789abcdef", "ack_0123456789abcdef"),
        ("no such key: ack_0123456789abcdef-XYZ", "0123456789abcdef"),
        ("Authorization: Basic YWRtaW46aHVudGVyMg==", "YWRtaW46aHVudGVyMg"),
        ("GET https://hooks.example/x?token=abc123&machine=1", "abc123"),
        ('{"password": "hunter2", "user": "anna"}', "hunter2"),
        ("the broker's word is open-sesame, or open%20sesame", "open-sesame"),
    ],
)
def test_what_is_secret_or_looks_like_it_is_not_written(words: str, secret: str, *, as_json: bool) -> None:
    made = record("%s", words, error=ValueError(words), detail=words)
    line = written(made, as_json=as_json, secrets=("open-sesame",))
    assert secret not in line
    assert "***" in line


@pytest.mark.parametrize("name", ["password", "broker_password", "Authorization", "cookie", "api_key", "token"])
def test_a_field_with_the_name_of_a_secret_is_not_written(name: str) -> None:
    made = record("signed in")
    setattr(made, name, "a plain word")
    line = written(made, as_json=True)
    assert "plain word" not in line


def test_every_setting_that_is_not_shown_is_known_to_be_secret() -> None:
    url = "postgresql+psycopg://alarmcast:p%40ss%2Fword@db/alarmcast"
    found = secrets_of(load_settings(broker_password="open-sesame", database_url=url))  # noqa: S106
    assert {"open-sesame", "p%40ss%2Fword", "p@ss/word"} <= set(found)
    assert secrets_of(Settings()) == []


def test_auto_is_text_on_a_terminal_and_json_elsewhere(spoken: io.StringIO) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    for stream, is_json in ((Terminal(), False), (spoken, True)):
        set_up_logs(Settings(), stream=stream)
        logging.getLogger("service.x").info("a word")
        assert stream.getvalue().startswith("{") is is_json
    asked = Terminal()
    set_up_logs(Settings(log_format=LogFormat.JSON), stream=asked)
    logging.getLogger("service.x").info("a word")
    assert json.loads(asked.getvalue())["event"] == "a word"


def test_we_speak_from_the_level_that_was_set_and_libraries_from_warnings_on(spoken: io.StringIO) -> None:
    set_up_logs(Settings(log_level=LogLevel.DEBUG), stream=spoken)
    for name in ("service.flows", "httpx", "uvicorn.error", "websockets.server", "paho"):
        logging.getLogger(name).debug("a word with a header")
        logging.getLogger(name).warning("a warning")
    assert [(line["logger"], line["level"]) for line in lines(spoken)] == [
        ("service.flows", "debug"),
        *((name, "warning") for name in ("service.flows", "httpx", "uvicorn.error", "websockets.server", "paho")),
    ]


def test_a_command_may_be_quieter_unless_the_settings_say_otherwise(spoken: io.StringIO) -> None:
    set_up_logs(Settings(), stream=spoken, least=LogLevel.WARNING)
    logging.getLogger("service").info("unheard")
    set_up_logs(Settings(log_level=LogLevel.INFO), stream=spoken, least=LogLevel.WARNING)
    logging.getLogger("service").info("heard")
    assert [line["event"] for line in lines(spoken)] == ["heard"]


def test_what_is_bound_and_what_is_added_stand_beside_the_words(spoken: io.StringIO) -> None:
    set_up_logs(Settings(), stream=spoken)
    with bound_contextvars(request_id="r1"):
        logging.getLogger("service.web").info("POST /v1/machines", extra={"status": 202})
    (line,) = lines(spoken)
    assert list(line)[:3] == ["timestamp", "level", "event"]
    assert (line["event"], line["status"], line["request_id"]) == ("POST /v1/machines", 202, "r1")


def test_a_thread_that_ends_in_an_error_is_logged_and_not_printed(
    spoken: io.StringIO, capsys: pytest.CaptureFixture[str]
) -> None:
    set_up_logs(Settings(), stream=spoken)
    thread = threading.Thread(target=lambda: 1 / 0, name="lost")
    thread.start()
    thread.join()
    (line,) = lines(spoken)
    assert (line["level"], line["event"]) == ("critical", "the thread lost has ended")
    assert "ZeroDivisionError" in line["exception"]
    assert capsys.readouterr().err == ""


def test_what_a_worker_says_of_a_job_names_the_job_and_its_machine(
    worker: Make,
    service: Service,
    stores: Stores,
    spoken: io.StringIO,
) -> None:
    assert service
    set_up_logs(Settings(), stream=spoken)
    assert worker(says(failed="There is nothing to learn.")).work()
    told = [line for line in lines(spoken) if line["logger"] == "service.learning.thread"]
    assert len(told) == 2
    number = stores.jobs.newest()[0].id
    assert {(line["job"], line["machine"]) for line in told} == {(number, "padova/filler-1")}
