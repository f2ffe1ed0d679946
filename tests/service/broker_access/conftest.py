"""Credentials on a secured broker."""

import pytest

from service.app.stores import Stores
from service.broker_access.service import CredentialService
from service.settings import Settings
from tests.support.broker_credentials import desk_of
from tests.support.secured_broker import GuardedMosquitto


@pytest.fixture
def desk(settings: Settings, stores: Stores, guarded: GuardedMosquitto) -> CredentialService:
    return desk_of(settings, stores, guarded)
