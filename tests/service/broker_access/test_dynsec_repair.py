"""A broker whose memory a power cut has emptied: it lets nobody in, and after it is mended those who manage it."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from service.broker_access.models import BrokerAuthState
from service.broker_access.mosquitto_setup import repair
from service.broker_access.service import CredentialService
from service.errors import Conflict, InputRejected, Unavailable
from service.machines.models import Machine
from tests.conftest import wait_until
from tests.service.conftest import FILLER
from tests.support.broker_credentials import issued_to, lets_in
from tests.support.secured_broker import GuardedMosquitto, trying
from wire.topics import agent_name

AT = datetime(2026, 11, 16, tzinfo=UTC)


def empty(broker: GuardedMosquitto, left: bytes = b"") -> None:
    """End the broker as a power cut would while it writes its memory."""
    broker.kill()
    broker.memory.write_bytes(left)


def test_a_broker_with_a_damaged_memory_lets_the_service_in_again_which_says_which_machines_are_locked_out(
    desk: CredentialService,
    guarded: GuardedMosquitto,
    filler: Machine,
) -> None:
    lost = issued_to(desk, filler)
    empty(guarded)
    guarded.start()
    with pytest.raises(Unavailable, match="refuses the connection: Not authorized"):
        desk.reconcile()
    guarded.kill()
    aside = repair(guarded.folder, at=AT)
    assert aside
    assert (aside.read_bytes(), aside.parent) == (b"", guarded.memory.parent)
    guarded.start()
    assert guarded.security.probe() == (BrokerAuthState.ON, None)
    assert "admin" in guarded.ctl("listClients")
    found = desk.reconcile()
    assert found
    assert found.missing == desk.locked_out == [FILLER]
    with trying(guarded, agent_name(FILLER), lost.password) as agent:
        assert not agent.is_in
    assert lets_in(guarded, desk.rotate(FILLER, who="test"))


@pytest.mark.parametrize("left", [b"", b'{"defaultACLAccess": {"publ', b"\0" * 4096, b"[]", b"{}"])
def test_every_damaged_memory_is_kept_and_nothing_else_is_touched(guarded: GuardedMosquitto, left: bytes) -> None:
    empty(guarded, left)
    others = {file: file.read_bytes() for file in guarded.folder.rglob("*") if file.is_file()}
    del others[guarded.memory]
    kept = []
    for day in range(2):
        kept.append(repair(guarded.folder, at=AT + timedelta(days=day)))
        guarded.memory.write_bytes(left)
    repair(guarded.folder, at=AT + timedelta(days=2))
    assert len(set(kept)) == 2
    assert [file.read_bytes() for file in kept if file] == [left, left]
    assert {file: file.read_bytes() for file in others} == others
    assert guarded.memory.stat().st_mode & 0o777 == 0o600
    guarded.start()
    assert set(guarded.holders()) == {"admin", "alarmcast-service"}


def test_a_memory_that_is_gone_is_made_anew(guarded: GuardedMosquitto) -> None:
    guarded.kill()
    guarded.memory.unlink()
    assert repair(guarded.folder, at=AT) is None
    guarded.start()
    wait_until(lambda: guarded.security.probe()[0] is BrokerAuthState.ON, "the service comes in")


def test_a_memory_that_is_whole_is_left_alone(guarded: GuardedMosquitto) -> None:
    before = guarded.memory.read_bytes()
    with pytest.raises(Conflict, match="would lock out every machine"):
        repair(guarded.folder, at=AT)
    assert guarded.memory.read_bytes() == before


def test_the_services_password_must_be_there_and_the_admins_need_not(guarded: GuardedMosquitto) -> None:
    empty(guarded)
    password = guarded.folder / "service-password"
    kept = password.read_text()
    password.unlink()
    with pytest.raises(InputRejected, match="ALARMCAST_BROKER_PASSWORD"):
        repair(guarded.folder, at=AT)
    assert guarded.memory.read_bytes() == b""
    password.write_text(kept)
    (guarded.folder / "admin-password").unlink()  # kept in a safe place, as broker-init says
    repair(guarded.folder, at=AT)
    guarded.start()
    assert "admin" in guarded.ctl("listClients")


def test_a_folder_that_broker_init_has_not_made_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputRejected, match="broker-init"):
        repair(tmp_path, at=AT)
