"""Credentials from the first issue to the last revocation, with a real store and a real, guarded Mosquitto."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from uuid import uuid4

import pytest

from edge_agent import settings as edge_settings
from service.app.stores import Stores
from service.broker_access.service import CredentialService
from service.errors import Gone, Unavailable
from service.machines.events import EventWrite
from service.machines.models import Agent, Machine
from tests.conftest import wait_until
from tests.service.conftest import FILLER, NOW
from tests.support.broker_credentials import NAME, issued_to, lets_in, state_of
from tests.support.secured_broker import GuardedMosquitto, trying
from wire.codec import decode
from wire.enums import CredentialState
from wire.state import AgentState
from wire.timestamps import to_us


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
    assert "as soon as the broker is available" in note
    guarded.start()
    assert lets_in(guarded, issued), "it has not been told yet"
    desk.reconcile()
    assert not lets_in(guarded, issued)
