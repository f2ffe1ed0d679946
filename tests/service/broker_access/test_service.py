"""Credentials from the first issue to the last revocation, with a real store and a real, guarded Mosquitto."""

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from uuid import uuid4

import pytest

from edge_agent import settings as edge_settings
from service.app.stores import Stores, open_stores
from service.broker_access.dynamic_security import DynamicSecurityClient
from service.broker_access.models import BrokerAuthState, acls_for
from service.broker_access.service import CredentialService
from service.broker_access.thread import Reconciler
from service.errors import Conflict, Gone, Unavailable
from service.machines.event_write import EventWrite
from service.machines.models import Agent, Machine
from service.settings import Settings
from tests.conftest import Mosquitto, wait_until
from tests.faults.proxy import Proxy
from tests.service.conftest import FILLER, NOW, enrolled
from tests.support.broker_credentials import NAME, copied, desk_of, issued_to, lets_in, state_of
from tests.support.secured_broker import GuardedMosquitto, trying
from wire.codec import decode
from wire.enums import CredentialState
from wire.identity import MachineId
from wire.state import AgentState
from wire.timestamps import to_us
from wire.topics import Channel, agent_name, topic


def test_a_machine_that_is_enrolled_comes_in_with_what_its_edge_toml_says(
    desk: CredentialService, guarded: GuardedMosquitto, filler: Machine, tmp_path: Path
) -> None:
    issued = issued_to(desk, filler)
    file = tmp_path / "edge.toml"
    file.write_text(issued.edge_toml)
    read = edge_settings.load(file, {}, {})
    assert (read.site, read.machine, read.source_timezone) == (*FILLER, "Europe/Rome")
    assert (read.broker_username, read.broker_password) == (NAME, issued.password)
    assert lets_in(guarded, issued)
    assert issued.password not in repr(issued)


def test_a_password_is_shown_once(desk: CredentialService, filler: Machine) -> None:
    issued_to(desk, filler)
    assert desk.enrolled(filler, is_new=False, who="test") == (None, None)
    assert desk.enrolled(filler, is_new=True, who="test") == (None, None)


def test_of_ten_who_enrol_at_once_one_is_shown_the_password(
    desk: CredentialService, guarded: GuardedMosquitto, filler: Machine
) -> None:
    with ThreadPoolExecutor(10) as pool:
        answers = list(pool.map(lambda _: desk.enrolled(filler, is_new=True, who="test")[0], range(10)))
    (issued,) = [one for one in answers if one]
    assert lets_in(guarded, issued)


def test_a_rotated_password_replaces_the_old_one(
    desk: CredentialService, guarded: GuardedMosquitto, filler: Machine
) -> None:
    first = issued_to(desk, filler)
    second = desk.rotate(FILLER, who="test")
    assert second.credential.generation == 2
    assert not lets_in(guarded, first)
    assert lets_in(guarded, second)


def test_who_is_revoked_is_thrown_out_and_enrolling_again_does_not_undo_it(
    desk: CredentialService, guarded: GuardedMosquitto, filler: Machine
) -> None:
    first = issued_to(desk, filler)
    with trying(guarded, NAME, first.password) as agent:
        assert agent.is_in
        desk.revoke(FILLER, who="test", reason="stolen")
        assert agent.gone.wait(10)
    assert not lets_in(guarded, first)
    assert (NAME in guarded.holders(), NAME in guarded.roles()) == (False, False)
    assert state_of(desk) is CredentialState.REVOKED
    issued, note = desk.enrolled(filler, is_new=False, who="test")
    assert issued is None
    assert note
    assert "revoked" in note
    again = desk.rotate(FILLER, who="test")
    assert again.credential.name == first.credential.name
    assert lets_in(guarded, again)


def test_a_machine_that_was_retired_comes_back_under_its_old_name(
    desk: CredentialService, guarded: GuardedMosquitto, filler: Machine
) -> None:
    first = issued_to(desk, filler)
    desk.revoke(FILLER, who="test", reason="sold")
    back = issued_to(desk, filler, is_new=True)
    assert (back.credential.name, back.credential.generation) == (first.credential.name, 2)
    assert lets_in(guarded, back)


def test_a_retired_machine_gets_no_new_password(desk: CredentialService, stores: Stores, filler: Machine) -> None:
    stores.enrolments.retire(filler, who="test", at=NOW, plant_at=NOW, reason=None)
    with pytest.raises(Gone):
        desk.rotate(FILLER, who="test")


@pytest.mark.parametrize("deed", ["retire", "erase"])
def test_who_was_let_go_is_thrown_out_though_the_service_was_killed_before_it_told_the_broker(
    desk: CredentialService, stores: Stores, guarded: GuardedMosquitto, filler: Machine, deed: str
) -> None:
    issued = issued_to(desk, filler)
    getattr(stores.enrolments, deed)(filler, who="test", at=NOW, plant_at=NOW, reason="sold")
    assert lets_in(guarded, issued), "it has not been told yet"
    desk.reconcile()
    assert not lets_in(guarded, issued)
    assert state_of(desk) is CredentialState.REVOKED
    assert [one.action for one in stores.audit.newest(2)] == [deed, "revoke_credentials"]


def test_for_an_agent_that_is_thrown_out_the_service_says_what_its_will_would(
    desk: CredentialService, stores: Stores, guarded: GuardedMosquitto, filler: Machine
) -> None:
    issued_to(desk, filler)
    online = Agent(online=True, last_seen_at=NOW, version="1.0", epoch=uuid4(), spooled=3, skew_ms=1)
    stores.events.commit(EventWrite(to_us(NOW), agent_states={filler.row_id: online}))
    desk.revoke(FILLER, who="test", reason="stolen")
    told: list[bytes] = []
    with trying(guarded, "alarmcast-service", guarded.password(), "listener") as listener:
        listener.client.on_message = lambda _c, _d, message: told.append(bytes(message.payload))
        listener.subscribe("alarmcast/v1/+/+/state")
        wait_until(lambda: told, "the retained state arrives")
    state = decode(AgentState, told[0])
    assert (state.online, state.epoch, state.spooled) == (False, online.epoch, 3)


def test_without_a_broker_the_machine_is_enrolled_all_the_same_and_nothing_is_lost(
    desk: CredentialService, guarded: GuardedMosquitto, filler: Machine
) -> None:
    guarded.kill()
    issued, note = desk.enrolled(filler, is_new=True, who="test")
    assert issued is None
    assert note
    assert f"alarmcast admin machine rotate {FILLER}" in note
    with pytest.raises(Unavailable):
        desk.rotate(FILLER, who="test")
    guarded.start()
    assert lets_in(guarded, desk.rotate(FILLER, who="test"))


def test_a_broker_that_is_away_costs_nobody_the_password_it_has(
    desk: CredentialService, guarded: GuardedMosquitto, filler: Machine
) -> None:
    issued = issued_to(desk, filler)
    guarded.kill()
    with pytest.raises(Unavailable):
        desk.rotate(FILLER, who="test")
    guarded.start()
    desk.reconcile()
    assert lets_in(guarded, issued)
    assert state_of(desk) is CredentialState.ACTIVE


def test_who_is_revoked_while_the_broker_is_away_is_removed_when_it_is_back(
    desk: CredentialService, guarded: GuardedMosquitto, filler: Machine
) -> None:
    issued = issued_to(desk, filler)
    guarded.kill()
    known, note = desk.revoke(FILLER, who="test", reason="stolen")
    assert known
    assert known.state is CredentialState.REVOKED
    assert note
    assert "as soon as the broker can be asked" in note
    guarded.start()
    assert lets_in(guarded, issued), "it has not been told yet"
    desk.reconcile()
    assert not lets_in(guarded, issued)


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
    assert "as soon as the broker can be asked" in note
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
    assert f"If it still lets {NAME} in, remove that user there." in note
