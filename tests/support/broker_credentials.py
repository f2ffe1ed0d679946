"""Credentials of a machine on a secured broker."""

import shutil
from pathlib import Path

from service.app.configuration import plant_clock
from service.app.stores import Stores
from service.broker_access.build import agent_access
from service.broker_access.service import CredentialService, IssuedCredential
from service.broker_access.store import CredentialStore
from service.machines.models import Machine
from service.settings import Settings
from tests.service.conftest import FILLER
from tests.support.secured_broker import GuardedMosquitto, trying
from wire.enums import CredentialState
from wire.topics import agent_name

NAME = agent_name(FILLER)


def desk_of(settings: Settings, stores: Stores, broker: GuardedMosquitto) -> CredentialService:
    clock, store = plant_clock(settings), CredentialStore(stores.database)
    return CredentialService(stores.machines, store, broker.security, clock, agent_access(settings))


def issued_to(desk: CredentialService, machine: Machine, *, is_new: bool = True) -> IssuedCredential:
    issued, note = desk.enrolled(machine, is_new=is_new, who="test")
    assert issued, note
    return issued


def lets_in(broker: GuardedMosquitto, issued: IssuedCredential) -> bool:
    with trying(broker, issued.credential.name, issued.password) as agent:
        return agent.is_in


def state_of(desk: CredentialService) -> CredentialState:
    known, _ = desk.get(FILLER)
    assert known
    return known.state


def copied(settings: Settings, folder: Path) -> Settings:
    """Return settings of a copy of the data as it is now: a backup that will be gone back to."""
    shutil.copytree(settings.data_dir, folder)
    return settings.model_copy(update={"data_dir": folder})
