"""Visitors of a service whose passwords are cheap to check."""

import pytest

from service.app.service import Service
from service.app.stores import Stores
from service.auth.password import HashCost, PasswordHasher
from service.settings import Settings
from tests.support.api_client import Visitor
from wire.enums import Role

PASSWORD = "four unrelated plain words"  # noqa: S105


@pytest.fixture
def service(settings: Settings, stores: Stores) -> Service:
    """The service, with passwords that are cheap to check."""
    made = Service(settings, stores)
    made.auth.login.hasher = PasswordHasher(HashCost(rounds=1, kilobytes=64))
    return made


@pytest.fixture
def admin(service: Service) -> Visitor:
    return Visitor(service, service.key)


@pytest.fixture
def stranger(service: Service) -> Visitor:
    return Visitor(service, None)


@pytest.fixture
def maria(admin: Visitor, stranger: Visitor) -> Visitor:
    """An operator of padova in a browser that has signed in."""
    admin.users.add("maria", role=Role.OPERATOR, sites=["padova"], password=PASSWORD)
    stranger.session.login("maria", PASSWORD)
    return stranger
