"""The suite itself: it sees losses where there are some, and it knows every way in which a link is bad."""

import json
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from threading import Thread

import pytest

from tests.conftest import free_port, require, wait_until
from tests.faults.environment import FaultEnvironment, Skipped, insist
from tests.faults.matrix import FAULTS, Effort, Fault
from tests.faults.proxy import Packets, Proxy
from tests.faults.runner import Row, play
from tests.faults.table import markdown


@pytest.mark.usefixtures("mosquitto")
def test_a_service_that_acks_before_it_commits_is_caught_losing_events() -> None:
    def killed_while_it_takes_events(env: FaultEnvironment, effort: Effort) -> Iterator[float]:
        with env.system() as system:
            for _ in range(effort.runs):
                before = sum(system.stored().values())
                wait_until(lambda: sum(system.stored().values()) > before, "it takes events", 60)  # noqa: B023
                system.plant.service.kill()
                system.plant.service.start()
                yield 0.0

    row = Row(Fault("hasty", killed_while_it_takes_events, None, Effort(3)), Effort(3))
    play(row, FaultEnvironment(module="tests.faults.ack_before_commit_service", patience=20))
    assert row.tally.lost > 0, row.error
    assert row.failed


@pytest.mark.usefixtures("mosquitto")
def test_the_service_as_it_is_loses_nothing() -> None:
    row = Row(FAULTS["service killed"], Effort(1))
    play(row, FaultEnvironment())
    assert (row.state, row.runs) == ("kept", 1), row.error
    assert row.tally.events > 0
    figures = row.figures()
    assert {"fault", "runs", "events", "lost", "duplicated", "recovery_seconds"} <= set(figures)
    assert markdown([row]).splitlines()[2].startswith("| service killed | 1 |")


def test_the_matrix_has_every_row_that_was_promised() -> None:
    promised = ["broker killed", "service killed", "agent killed", "random", "memory", "for long", "link", "acks"]
    promised += [
        "stale",
        "edge disk",
        "central disk",
        "locked",
        "restore",
        "backlog",
        "soak",
        "enrolled",
        "revoked",
    ]
    for word in promised:
        assert any(word in name for name in FAULTS), word
    assert FAULTS["soak"].quick is None


def test_a_row_that_breaks_its_promise_or_cannot_be_played_says_so() -> None:
    def breaks(_env: FaultEnvironment, _effort: Effort) -> Iterator[float]:
        yield 1.0
        insist(False, "water is wet")  # noqa: FBT003

    def cannot(_env: FaultEnvironment, _effort: Effort) -> Iterator[float]:
        raise Skipped("no such disk")
        yield 1.0

    fault = FAULTS["broker killed"]
    rows = []
    for inject in (breaks, cannot):
        row = Row(type(fault)("x", inject, None, Effort(1)), Effort(1))
        play(row, FaultEnvironment())
        rows.append((row.state, row.error))
    assert rows == [("failed", "water is wet"), ("skipped", "no such disk")]


def test_json_is_written_where_it_is_asked_for(tmp_path: Path) -> None:
    require(Path("/usr/sbin/mosquitto").exists(), "mosquitto")
    command = [
        sys.executable,
        "-m",
        "tests.faults",
        "--only",
        "session lost",
        "--json",
        str(tmp_path / "rows.json"),
    ]
    command += ["--markdown", str(tmp_path / "rows.md")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    (row,) = json.loads((tmp_path / "rows.json").read_text())
    assert row["fault"] == "session lost, stale message ids"
    assert (row["runs"], row["lost"], row["duplicated"]) == (1, 0, 0)
    assert "session lost" in (tmp_path / "rows.md").read_text()


class Echo:
    """Answers every byte with itself."""

    def __init__(self) -> None:
        self.listener = socket.create_server(("127.0.0.1", free_port()))
        self.port = int(self.listener.getsockname()[1])
        Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            connection, _ = self.listener.accept()
            Thread(target=self._echo, args=(connection,), daemon=True).start()

    @staticmethod
    def _echo(connection: socket.socket) -> None:
        with connection:
            try:
                while data := connection.recv(65_536):
                    connection.sendall(data)
            except OSError:
                pass


PING = b"\xc0\x00"
ACK = b"\x30\x08\x00\x06x/acks"


@pytest.fixture
def proxy() -> Iterator[Proxy]:
    proxy = Proxy(Echo().port)
    proxy.start()
    yield proxy
    proxy.stop()


def connected(proxy: Proxy) -> socket.socket:
    return socket.create_connection(("127.0.0.1", proxy.port), timeout=5)


def echo(connection: socket.socket, data: bytes) -> bytes:
    connection.sendall(data)
    return connection.recv(len(data))


def is_over(connection: socket.socket) -> bool:
    try:
        return connection.recv(1) == b""
    except ConnectionError:
        return True


def test_a_good_link_passes_everything_on(proxy: Proxy) -> None:
    with connected(proxy) as connection:
        assert echo(connection, PING) == PING
        assert echo(connection, ACK) == ACK


def test_a_cut_link_ends_connections_and_lets_nobody_in_until_it_is_healed(proxy: Proxy) -> None:
    with connected(proxy) as connection:
        assert echo(connection, PING) == PING
        proxy.cut()
        assert is_over(connection)
    with connected(proxy) as refused:
        assert is_over(refused)
    proxy.heal()
    with connected(proxy) as again:
        assert echo(again, PING) == PING


def test_a_half_open_link_looks_open_and_passes_nothing(proxy: Proxy) -> None:
    with connected(proxy) as connection:
        assert echo(connection, PING) == PING
        proxy.half_open()
        time.sleep(0.1)
        connection.sendall(PING)
        connection.settimeout(0.3)
        with pytest.raises(TimeoutError):
            connection.recv(1)
        with connected(proxy) as other:
            assert echo(other, PING) == PING


def test_a_slow_and_a_narrow_link_take_their_time(proxy: Proxy) -> None:
    with connected(proxy) as connection:
        for slow in ("delay", "bytes_per_second"):
            setattr(proxy, slow, {"delay": 0.2, "bytes_per_second": 10}[slow])
            started = time.monotonic()
            assert echo(connection, PING) == PING
            assert time.monotonic() - started >= 0.2
            proxy.heal()


def test_a_link_that_loses_acks_passes_all_the_rest(proxy: Proxy) -> None:
    proxy.lose_acks = 1.0
    with connected(proxy) as connection:
        assert echo(connection, ACK + PING)[:2] == PING
    assert proxy.lost_acks == 1


def test_packets_are_told_apart_however_the_bytes_arrive() -> None:
    long = b"\x30\x80\x01" + b"\x00\x01t" + b"x" * 125
    stream = PING + long + ACK
    for size in (1, 2, 7, 1000):
        packets = Packets()
        cut = [stream[first : first + size] for first in range(0, len(stream), size)]
        assert [packet for piece in cut for packet in packets.of(piece)] == [PING, long, ACK]
