"""Credentials in the store: one row a machine, claimed once, and never a password."""

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

from service.auth.audit_store import AuditStore
from service.broker_access.models import Credential
from service.broker_access.store import CredentialStore
from service.database.engine import Database
from service.database.tables import credentials
from service.learning.enrolment_store import EnrolmentStore
from service.machines.models import Machine
from tests.service.conftest import FILLER, NOW, enrolled
from wire.enums import CredentialState
from wire.identity import MachineId


def machine(database: Database, name: MachineId = FILLER) -> Machine:
    return enrolled(EnrolmentStore(database), name)


def claimed(store: CredentialStore, one: Machine, *, again: bool = False) -> Credential | None:
    return store.issue_if_absent(one, again=again, at=NOW, who="test")


def test_of_many_who_claim_at_once_one_gets_it(database: Database) -> None:
    store, one = CredentialStore(database), machine(database)
    with ThreadPoolExecutor(8) as pool:
        got = list(pool.map(lambda _: claimed(store, one), range(8)))
    assert [each.generation for each in got if each] == [1]
    assert [deed.action for deed in AuditStore(database).newest()].count("issue_credentials") == 1


def test_a_row_has_no_place_for_a_password() -> None:
    words = " ".join(column.name for column in credentials.columns)
    assert not any(word in words for word in ("password", "secret", "hash", "salt"))


def test_rotating_raises_the_generation_and_keeps_the_name(database: Database) -> None:
    store, one = CredentialStore(database), machine(database)
    first = claimed(store, one)
    second = store.rotate(one, at=NOW + timedelta(days=1), who="test")
    assert first
    assert (second.generation, second.name) == (2, first.name)
    assert (second.issued_at, second.rotated_at) == (NOW, NOW + timedelta(days=1))
    assert second.state is CredentialState.ACTIVE


def test_who_rotates_without_having_any_gets_the_first(database: Database) -> None:
    assert CredentialStore(database).rotate(machine(database), at=NOW, who="test").generation == 1


def test_a_revoked_machine_gets_new_ones_only_if_it_comes_back_and_then_under_its_old_name(
    database: Database,
) -> None:
    store, one = CredentialStore(database), machine(database)
    claimed(store, one)
    revoked = store.revoke(one, at=NOW, who="test", reason="stolen")
    assert revoked
    assert revoked.state is CredentialState.REVOKED
    assert store.revoke(one, at=NOW, who="test", reason="again") is None
    assert claimed(store, one) is None
    back = claimed(store, one, again=True)
    assert back
    assert (back.generation, back.state, back.name) == (2, CredentialState.ACTIVE, revoked.name)
    assert AuditStore(database).newest()[1].reason == "stolen"


def test_what_the_broker_does_is_written_down_once_and_taken_back(database: Database) -> None:
    store, one = CredentialStore(database), machine(database)
    claimed(store, one)
    later = NOW + timedelta(hours=1)
    for at in (NOW, later):
        store.apply(matching=(), locked_out=[FILLER], newer={}, at=at)
    found = store.get(one)
    assert found
    assert (found.state, found.locked_out_at) == (CredentialState.LOCKED_OUT, NOW)
    store.apply(matching=[FILLER], locked_out=(), newer={FILLER: 7}, at=later)
    (found,) = store.all()
    assert (found.state, found.generation) == (CredentialState.ACTIVE, 7)
    store.apply(matching=(), locked_out=(), newer={FILLER: 3}, at=later)
    assert store.all()[0].generation == 7


def test_a_revoked_machine_is_never_locked_out(database: Database) -> None:
    store, one = CredentialStore(database), machine(database)
    claimed(store, one)
    store.revoke(one, at=NOW, who="test", reason=None)
    store.apply(matching=(), locked_out=[FILLER], newer={}, at=NOW)
    assert store.all()[0].locked_out_at is None


def test_an_installation_has_one_identity_however_many_ask_for_it_at_once(database: Database) -> None:
    store = CredentialStore(database)
    assert store.known_installation() is None
    with ThreadPoolExecutor(8) as pool:
        identities = set(pool.map(lambda _: store.installation(), range(8)))
    assert identities == {store.known_installation()}


def test_a_password_counts_as_lost_unless_its_issue_was_confirmed(database: Database) -> None:
    store, one = CredentialStore(database), machine(database)
    claimed(store, one)
    store.apply(matching=[one.id], locked_out=(), newer={}, at=NOW)
    store.disown_unconfirmed(at=NOW)
    confirmed = store.get(one)
    assert confirmed
    assert (confirmed.generation, confirmed.state) == (1, CredentialState.ACTIVE)
    store.rotate(one, at=NOW, who="test")
    store.disown_unconfirmed(at=NOW)
    store.disown_unconfirmed(at=NOW)
    lost = store.get(one)
    assert lost
    assert (lost.generation, lost.state) == (3, CredentialState.LOCKED_OUT)
