"""A broker and the wrong database: nobody's password is touched, and a person is told what to do."""

import subprocess
import sys
from pathlib import Path

import pytest

from service.app.configuration import load_settings
from service.app.stores import Stores, open_stores
from service.broker_access.service import CredentialService, adopt
from service.broker_access.store import CredentialStore
from service.errors import Conflict
from service.machines.models import Machine
from service.settings import Settings
from tests.service.conftest import FILLER, NOW, enrolled
from tests.support.broker_credentials import NAME, copied, desk_of, issued_to, lets_in, state_of
from tests.support.secured_broker import GuardedMosquitto, trying
from tests.system.conftest import clean_environment
from wire.enums import CredentialState
from wire.identity import MachineId
from wire.topics import agent_name

CAPPER = MachineId("padova", "capper-2")


@pytest.fixture
def desk(settings: Settings, stores: Stores, guarded: GuardedMosquitto) -> CredentialService:
    return desk_of(settings, stores, guarded)


def test_one_start_on_an_empty_folder_costs_no_machine_its_credentials(
    desk: CredentialService, guarded: GuardedMosquitto, filler: Machine, tmp_path: Path
) -> None:
    issued = issued_to(desk, filler)
    before = guarded.remembered()
    elsewhere = load_settings(data_dir=tmp_path / "empty")
    with open_stores(elsewhere) as stores:
        wrong = desk_of(elsewhere, stores, guarded)
        assert wrong.reconcile() is None
        assert "another installation" in (wrong.foreign or "")
        capper = enrolled(stores.enrolments, CAPPER)
        nothing, note = wrong.enrolled(capper, is_new=True, who="test")
        assert nothing is None
        assert "alarmcast admin broker-adopt" in (note or "")
        with pytest.raises(Conflict, match="No credentials were issued"):
            wrong.rotate(CAPPER, who="test")
        assert wrong.get(CAPPER) == (None, None), "the database did not change either"
    assert guarded.remembered() == before
    assert lets_in(guarded, issued)
    desk.reconcile()
    assert (state_of(desk), desk.foreign, lets_in(guarded, issued)) == (CredentialState.ACTIVE, None, True)


def test_a_broker_of_an_older_version_is_claimed_by_the_database_that_knows_its_machines_alone(
    settings: Settings, desk: CredentialService, guarded: GuardedMosquitto, filler: Machine, tmp_path: Path
) -> None:
    issued = issued_to(desk, filler)
    guarded.ctl("deleteRole", "alarmcast-installation")
    elsewhere = load_settings(data_dir=tmp_path / "empty")
    with open_stores(elsewhere) as stores:
        wrong = desk_of(elsewhere, stores, guarded)
        assert wrong.reconcile() is None
        assert "has 1 enabled machines and this database knows none" in (wrong.foreign or "")
    assert guarded.security.installation() is None
    desk.reconcile()
    assert guarded.security.installation() == desk.credentials.installation()
    assert lets_in(guarded, issued)
    assert settings


def test_whom_an_older_backup_does_not_know_is_disabled_and_the_newer_database_lets_it_back_in(
    settings: Settings,
    stores: Stores,
    desk: CredentialService,
    guarded: GuardedMosquitto,
    filler: Machine,
    tmp_path: Path,
) -> None:
    issued_to(desk, filler)
    backup = copied(settings, tmp_path / "backup")
    late = issued_to(desk, enrolled(stores.enrolments, CAPPER))
    with open_stores(backup) as earlier:
        restored = desk_of(backup, earlier, guarded)
        found = restored.reconcile()
        assert found
        assert found.unknown_clients == [agent_name(CAPPER)]
        assert not lets_in(guarded, late)
        again = restored.reconcile()
        assert again
        assert again.is_empty
    desk.reconcile()
    assert lets_in(guarded, late)
    assert desk.locked_out == []


def test_a_database_that_adopts_a_broker_disables_whom_it_does_not_know_and_manages_it_from_then_on(
    desk: CredentialService, guarded: GuardedMosquitto, filler: Machine, tmp_path: Path
) -> None:
    issued = issued_to(desk, filler)
    elsewhere = load_settings(data_dir=tmp_path / "other")
    with open_stores(elsewhere) as stores:
        other = desk_of(elsewhere, stores, guarded)
        other.reconcile()
        assert adopt(CredentialStore(stores.database), guarded.security) == [NAME]
        other.reconcile()
        assert other.foreign is None
        assert lets_in(guarded, issued_to(other, enrolled(stores.enrolments, CAPPER)))
        assert not lets_in(guarded, issued)
    assert desk.reconcile() is None
    adopt(CredentialStore(desk.credentials.database), guarded.security)
    desk.reconcile()
    assert lets_in(guarded, issued), "its password was kept"


@pytest.mark.parametrize("is_first", [True, False])
def test_a_password_that_a_killed_service_gave_to_the_broker_and_to_nobody_counts_as_lost(
    stores: Stores,
    desk: CredentialService,
    guarded: GuardedMosquitto,
    filler: Machine,
    is_first: bool,  # noqa: FBT001
) -> None:
    desk.reconcile()
    if not is_first:
        issued_to(desk, filler)
    # What a service leaves that is killed after the broker has done it and before anybody was answered:
    written = CredentialStore(stores.database).rotate(filler, at=NOW, who="test")
    guarded.security.grant(FILLER, generation=written.generation, password="unheard")  # noqa: S106
    desk.reconcile()
    assert (state_of(desk), desk.locked_out) == (CredentialState.LOCKED_OUT, [FILLER])
    with trying(guarded, NAME, "unheard") as agent:
        assert not agent.is_in
    assert lets_in(guarded, desk.rotate(FILLER, who="test"))
    desk.reconcile()
    assert (state_of(desk), desk.locked_out) == (CredentialState.ACTIVE, [])


def test_broker_adopt_says_what_it_would_do_and_does_it_only_when_told(
    settings: Settings, desk: CredentialService, guarded: GuardedMosquitto, filler: Machine, tmp_path: Path
) -> None:
    def broker_adopt(folder: Path, *more: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "service", "admin", "broker-adopt", "--data-dir", str(folder), *more]
        there = guarded.environment | {"ALARMCAST_BROKER_PORT": str(guarded.port)}
        return subprocess.run(
            command, env=clean_environment() | there, capture_output=True, text=True, check=False
        )

    issued_to(desk, filler)
    elsewhere = load_settings(data_dir=tmp_path / "other")
    assert "Start the service on it first" in broker_adopt(elsewhere.data_dir).stderr
    with open_stores(elsewhere) as stores:
        desk_of(elsewhere, stores, guarded).reconcile()
    asked = broker_adopt(elsewhere.data_dir)
    assert "has 1 enabled machines; the database knows 0 of them" in asked.stdout, asked.stderr
    assert "add --yes" in asked.stdout
    assert guarded.security.snapshot().clients[NAME].enabled
    done = broker_adopt(elsewhere.data_dir, "--yes")
    assert NAME in done.stdout, done.stderr
    assert not guarded.security.snapshot().clients[NAME].enabled
    assert guarded.security.installation() != desk.credentials.installation()
    assert settings
