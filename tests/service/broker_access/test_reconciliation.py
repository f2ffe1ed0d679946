"""Credentials after a restore of broker or database, with a slow broker, and without dynamic security."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from service.app.stores import Stores, open_stores
from service.broker_access.dynamic_security import DynamicSecurityClient
from service.broker_access.models import BrokerAuthState, acls_for
from service.broker_access.service import CredentialService
from service.broker_access.thread import Reconciler
from service.errors import Conflict, Unavailable
from service.machines.models import Machine
from service.settings import Settings
from tests.conftest import Mosquitto, wait_until
from tests.faults.proxy import Proxy
from tests.service.conftest import FILLER, enrolled
from tests.support.broker_credentials import NAME, copied, desk_of, issued_to, lets_in, state_of
from tests.support.secured_broker import GuardedMosquitto, trying
from wire.enums import CredentialState
from wire.identity import MachineId
from wire.topics import Channel, agent_name, topic


@pytest.fixture
def slow(guarded: GuardedMosquitto) -> Iterator[DynamicSecurityClient]:
    """The same broker, at the end of a link on which every answer comes too late."""
    proxy = Proxy(guarded.port)
    proxy.start()
    proxy.delay = 0.2
    address = replace(guarded.address, port=proxy.port)
    yield DynamicSecurityClient(address, client_id="test", connect_timeout_s=20, answer_timeout_s=0.1)
    proxy.stop()


def test_a_broker_that_answers_late_is_still_a_guarded_one(
    desk: CredentialService, slow: DynamicSecurityClient, filler: Machine
) -> None:
    desk.probe()
    desk.security = slow
    for ask in (desk.probe, desk.reconcile):
        with pytest.raises(Unavailable, match=r"has not answered within 0\.1 seconds"):
            ask()
    assert desk.auth_state is BrokerAuthState.ON
    issued, note = desk.enrolled(filler, is_new=True, who="test")
    assert issued is None
    assert note
    assert f"alarmcast admin machine rotate {FILLER}" in note


def test_who_is_revoked_while_the_broker_answers_late_is_removed_later_and_that_is_said(
    desk: CredentialService, guarded: GuardedMosquitto, slow: DynamicSecurityClient, filler: Machine
) -> None:
    issued = issued_to(desk, filler)
    desk.security = slow
    _, note = desk.revoke(FILLER, who="test", reason="stolen")
    assert note
    assert "as soon as the broker is available" in note
    desk.security = guarded.security
    desk.reconcile()
    assert not lets_in(guarded, issued)


def test_a_password_that_reached_the_broker_and_nobody_else_lets_nobody_in(
    desk: CredentialService, guarded: GuardedMosquitto, slow: DynamicSecurityClient, filler: Machine
) -> None:
    def lost() -> str:
        desk.security = slow  # from here on answers come too late
        return "secret"

    issued_to(desk, filler)
    usual, desk.password = desk.password, lost
    with pytest.raises(Unavailable, match="has not answered"):
        desk.rotate(FILLER, who="test")
    wait_until(lambda: guarded.security.snapshot().clients[NAME].generation == 2, "the broker has done it")
    desk.security, desk.password = guarded.security, usual
    desk.reconcile()
    assert (state_of(desk), desk.locked_out) == (CredentialState.LOCKED_OUT, [FILLER])
    with trying(guarded, NAME, "secret") as agent:
        assert not agent.is_in
    again = desk.rotate(FILLER, who="test")
    desk.reconcile()
    assert lets_in(guarded, again)
    assert (state_of(desk), desk.locked_out) == (CredentialState.ACTIVE, [])


@contextmanager
def from_before(guarded: GuardedMosquitto) -> Iterator[None]:
    """Bring the broker back, at the end of the block, to what it was at its beginning."""
    kept = guarded.memory.read_bytes()
    yield
    guarded.kill()
    guarded.memory.write_bytes(kept)
    guarded.start()


def test_a_broker_restored_from_before_an_enrolment_gets_the_machine_back_locked_out(
    desk: CredentialService, guarded: GuardedMosquitto, filler: Machine
) -> None:
    with from_before(guarded):
        issued = issued_to(desk, filler)
    desk.reconcile()
    assert state_of(desk) is CredentialState.LOCKED_OUT
    assert desk.locked_out == [FILLER]
    assert not lets_in(guarded, issued)
    assert guarded.security.snapshot().roles == {NAME: acls_for(FILLER)}
    desk.reconcile()
    assert lets_in(guarded, desk.rotate(FILLER, who="test"))
    desk.reconcile()
    assert (state_of(desk), desk.locked_out) == (CredentialState.ACTIVE, [])


def test_a_broker_restored_from_before_a_rotation_takes_no_old_password(
    desk: CredentialService, guarded: GuardedMosquitto, filler: Machine
) -> None:
    first = issued_to(desk, filler)
    with from_before(guarded):
        desk.rotate(FILLER, who="test")
    assert lets_in(guarded, first), "that is the harm"
    desk.reconcile()
    assert not lets_in(guarded, first)
    assert state_of(desk) is CredentialState.LOCKED_OUT


def test_a_broker_restored_from_before_a_revocation_lets_nobody_back_in(
    desk: CredentialService, guarded: GuardedMosquitto, filler: Machine
) -> None:
    issued = issued_to(desk, filler)
    with from_before(guarded):
        desk.revoke(FILLER, who="test", reason="stolen")
    desk.reconcile()
    assert not lets_in(guarded, issued)
    assert guarded.security.snapshot().clients == {}


def test_a_database_restored_from_before_a_rotation_leaves_the_machine_in(
    settings: Settings, desk: CredentialService, guarded: GuardedMosquitto, filler: Machine, tmp_path: Path
) -> None:
    issued_to(desk, filler)
    backup = copied(settings, tmp_path / "backup")
    newest = desk.rotate(FILLER, who="test")
    with open_stores(backup) as stores:
        restored = desk_of(backup, stores, guarded)
        restored.reconcile()
        assert lets_in(guarded, newest)
        assert restored.get(FILLER)[0] == replace(newest.credential, rotated_at=None)
        assert restored.rotate(FILLER, who="test").credential.generation == 3


def test_a_database_restored_from_before_an_enrolment_or_a_revocation_lets_nobody_in(
    settings: Settings,
    stores: Stores,
    desk: CredentialService,
    guarded: GuardedMosquitto,
    filler: Machine,
    tmp_path: Path,
) -> None:
    old = issued_to(desk, filler)
    backup = copied(settings, tmp_path / "backup")
    desk.revoke(FILLER, who="test", reason="stolen")
    capper = enrolled(stores.enrolments, MachineId("padova", "capper-2"))
    late = issued_to(desk, capper)
    with open_stores(backup) as earlier:
        restored = desk_of(backup, earlier, guarded)
        restored.reconcile()
        assert not lets_in(guarded, late)
        assert not lets_in(guarded, old)
        assert restored.locked_out == [FILLER]
        enabled = {name: one.enabled for name, one in guarded.security.snapshot().clients.items()}
        assert enabled == {NAME: False, agent_name(capper.id): False}


def test_what_agrees_is_left_alone_and_nobody_is_thrown_out(
    desk: CredentialService, guarded: GuardedMosquitto, filler: Machine
) -> None:
    issued = issued_to(desk, filler)
    with trying(guarded, NAME, issued.password) as agent:
        found = desk.reconcile()
        assert found
        assert found.is_empty
        assert agent.publish(topic(FILLER, Channel.EVENTS)) != "Not authorized"
        assert not agent.gone.is_set()


def test_foreign_clients_and_roles_are_left_alone(desk: CredentialService, guarded: GuardedMosquitto) -> None:
    guarded.ctl("createRole", "historian")
    guarded.ctl("createClient", "historian", "-p", "x")
    desk.reconcile()
    assert {"admin", "alarmcast-service", "historian"} == set(guarded.holders())
    assert "historian" in guarded.roles()


def test_the_reconciler_looks_at_the_start_and_after_every_reconnect(
    desk: CredentialService, guarded: GuardedMosquitto, filler: Machine
) -> None:
    connections = 0
    reconciler = Reconciler(desk, connections=lambda: connections, poll_interval_s=0.01)
    reconciler.start()
    connections = 1
    wait_until(lambda: desk.auth_state is BrokerAuthState.ON, "the broker was asked")
    issued = issued_to(desk, filler)
    kept = json.dumps(guarded.remembered())
    desk.revoke(FILLER, who="test", reason="stolen")
    guarded.kill()
    guarded.memory.write_text(kept)
    guarded.start()
    assert lets_in(guarded, issued)
    connections = 2
    wait_until(lambda: NAME not in guarded.holders(), "the two agree again")
    assert reconciler.error is None
    reconciler.stop()


def test_where_the_broker_is_open_nothing_is_issued_and_that_is_no_trouble(
    desk: CredentialService, mosquitto: Mosquitto, guarded: GuardedMosquitto, filler: Machine
) -> None:
    address = replace(guarded.address, port=mosquitto.port)
    desk.security = DynamicSecurityClient(address, client_id="test")
    assert desk.enrolled(filler, is_new=True, who="test") == (None, None)
    assert desk.auth_state is BrokerAuthState.OFF
    assert desk.reconcile() is None
    with pytest.raises(Conflict, match="broker-init"):
        desk.rotate(FILLER, who="test")
    assert desk.get(FILLER) == (None, None)


@pytest.fixture
def open_one(guarded: GuardedMosquitto, mosquitto: Mosquitto) -> DynamicSecurityClient:
    return DynamicSecurityClient(replace(guarded.address, port=mosquitto.port), client_id="test")


def test_a_broker_that_was_open_is_asked_again_before_anybody_is_let_in_or_thrown_out(
    desk: CredentialService, guarded: GuardedMosquitto, open_one: DynamicSecurityClient, filler: Machine
) -> None:
    def was_open() -> None:
        desk.security = open_one
        assert desk.probe() is BrokerAuthState.OFF
        desk.security = guarded.security

    was_open()
    issued = issued_to(desk, filler)
    with trying(guarded, NAME, issued.password) as agent:
        assert agent.is_in
        was_open()
        assert desk.revoke(FILLER, who="test", reason="stolen")[1] is None
        assert agent.gone.wait(10)


@pytest.mark.parametrize("setting", ["auto", "off"])
def test_where_the_broker_cannot_be_told_of_a_revocation_that_is_said(
    desk: CredentialService, open_one: DynamicSecurityClient, filler: Machine, setting: str
) -> None:
    issued_to(desk, filler)
    told = replace(desk, security=open_one if setting == "auto" else None)
    known, note = told.revoke(FILLER, who="test", reason="stolen")
    assert known
    assert known.state is CredentialState.REVOKED
    assert note
    assert f"If it still accepts {NAME}, remove that user there." in note
