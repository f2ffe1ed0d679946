"""A socket read ahead: the same bytes in the same order, and as quiet or as closed as the one beneath."""

import socket
from collections.abc import Iterator

import pytest

from service.messaging.mqtt_socket import BufferedSocket


@pytest.fixture
def ends() -> Iterator[tuple[BufferedSocket, socket.socket]]:
    ours, theirs = socket.socketpair()
    ours.settimeout(0)
    with ours, theirs:
        yield BufferedSocket(ours), theirs


def test_bytes_come_in_pieces_and_what_is_left_is_pending(ends: tuple[BufferedSocket, socket.socket]) -> None:
    ahead, theirs = ends
    theirs.sendall(b"abcdef")
    assert (ahead.recv(1), ahead.pending()) == (b"a", 5)
    assert (ahead.recv(2), ahead.pending()) == (b"bc", 3)
    theirs.sendall(b"gh")
    assert (ahead.recv(9), ahead.pending()) == (b"def", 0)
    assert ahead.recv(9) == b"gh"


def test_where_nothing_has_come_it_says_so_as_a_socket_does(ends: tuple[BufferedSocket, socket.socket]) -> None:
    ahead, _ = ends
    with pytest.raises(BlockingIOError):
        ahead.recv(1)


def test_the_end_is_told_after_the_last_byte(ends: tuple[BufferedSocket, socket.socket]) -> None:
    ahead, theirs = ends
    theirs.sendall(b"z")
    theirs.close()
    assert [ahead.recv(4), ahead.recv(4)] == [b"z", b""]


def test_everything_else_is_the_sockets_own(ends: tuple[BufferedSocket, socket.socket]) -> None:
    ahead, theirs = ends
    ahead.send(b"out")
    assert theirs.recv(3) == b"out"
    assert ahead.fileno() > 0
