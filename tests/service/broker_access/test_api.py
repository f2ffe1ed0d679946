"""Credentials over REST, in front of a real, guarded Mosquitto: shown once, and then never the secret again."""

from collections.abc import Iterator

import pytest

from alarmcast import Conflict, Gone, NotFound, Rejected, Unavailable
from service.app.service import Service
from service.app.stores import Stores
from service.settings import DynamicSecurity, Settings
from tests.conftest import wait_until
from tests.support.api_client import Client
from tests.support.secured_broker import GuardedMosquitto, trying
from wire.enums import CredentialState

FILLER = "padova/filler-1"
NAME = f"alarmcast-edge/{FILLER}"


@pytest.fixture
def service(settings: Settings, stores: Stores, guarded: GuardedMosquitto) -> Service:
    address = guarded.address
    told = {"broker_port": address.port, "broker_username": address.username, "broker_password": address.password}
    return Service(settings.model_copy(update=told), stores)


@pytest.fixture
def client(service: Service) -> Client:
    return Client(service)


def test_enrolment_answers_with_credentials_once(client: Client, guarded: GuardedMosquitto) -> None:
    body = {"site": "padova", "machine": "filler-1", "time_zone": "Europe/Rome"}
    first = client.request("POST", "/v1/machines", json=body, headers={"Idempotency-Key": "k"})
    assert first.headers["cache-control"] == "no-store"
    shown = first.json()["credentials"]
    assert set(shown) == {"username", "password", "client_id", "generation", "edge_toml"}
    assert (shown["username"], shown["client_id"], shown["generation"]) == (NAME, NAME, 1)
    with trying(guarded, NAME, shown["password"]) as agent:
        assert agent.is_in
    for headers in ({"Idempotency-Key": "k"}, {"Idempotency-Key": "other"}, {}):
        again = client.request("POST", "/v1/machines", json=body, headers=headers)
        assert again.json()["credentials"] is None
        assert again.json()["job"]["id"] == first.json()["job"]["id"]
        assert shown["password"] not in again.text


def test_what_is_told_later_is_never_the_secret(client: Client, stores: Stores, settings: Settings) -> None:
    issued = client.enrolment.enrol(FILLER).credentials
    assert issued
    rotated = client.credentials.rotate(FILLER)
    answer = client.get(f"/v1/machines/{FILLER}/credentials")
    told = client.credentials.get(FILLER)
    assert (told.state, told.generation, told.username) == (CredentialState.ACTIVE, 2, NAME)
    assert told.rotated_at is not None
    everything = answer.text + client.get("/v1/status").text + str(stores.audit.newest())
    for secret in (issued.password, rotated.password):
        assert secret not in everything
        assert secret not in repr(issued) + repr(rotated)
        assert not [f for f in settings.data_dir.rglob("*") if f.is_file() and secret.encode() in f.read_bytes()]
    assert [deed.action for deed in stores.audit.newest(2)] == ["rotate_credentials", "issue_credentials"]


def test_revoking_needs_a_reason_and_is_written_down(
    client: Client, stores: Stores, guarded: GuardedMosquitto
) -> None:
    client.enrolment.enrol(FILLER)
    with pytest.raises(Rejected):
        client.credentials.revoke(FILLER, reason=" ")
    told = client.credentials.revoke(FILLER, reason="stolen")
    assert (told.state, told.note) == (CredentialState.REVOKED, None)
    assert NAME not in guarded.holders()
    (deed,) = stores.audit.newest(1)
    assert (deed.action, deed.subject, deed.reason) == ("revoke_credentials", FILLER, "stolen")


@pytest.mark.parametrize("deed", ["retire", "erase"])
def test_who_is_let_go_is_revoked_and_comes_back_under_the_same_name(
    client: Client, guarded: GuardedMosquitto, deed: str
) -> None:
    first = client.enrolment.enrol(FILLER).credentials
    getattr(client.enrolment, deed)(FILLER, reason="sold")
    assert NAME not in guarded.holders()
    assert client.credentials.get(FILLER).state is CredentialState.REVOKED
    if deed == "retire":
        with pytest.raises(Gone):
            client.credentials.rotate(FILLER)
    back = client.enrolment.enrol(FILLER).credentials
    assert first
    assert back
    assert (back.username, back.generation) == (first.username, 2)
    assert back.password != first.password


def test_a_machine_that_nobody_knows_has_no_credentials(client: Client) -> None:
    for ask in (client.credentials.get, client.credentials.rotate):
        with pytest.raises(NotFound):
            ask("padova/nobody")
    with pytest.raises(NotFound):
        client.credentials.revoke("padova/nobody", reason="x")


def test_while_the_broker_is_away_rotating_is_unavailable_and_revoking_is_not(
    client: Client, guarded: GuardedMosquitto
) -> None:
    client.enrolment.enrol(FILLER)
    guarded.kill()
    with pytest.raises(Unavailable):
        client.credentials.rotate(FILLER)
    assert client.credentials.get(FILLER).generation == 1
    told = client.credentials.revoke(FILLER, reason="stolen")
    assert told.state is CredentialState.REVOKED
    assert told.note
    retired = client.enrolment.retire(FILLER, reason="sold")
    assert retired.state == "retired"


def test_with_dynamic_security_off_there_are_none(settings: Settings, stores: Stores) -> None:
    off = Service(settings.model_copy(update={"broker_dynamic_security": DynamicSecurity.OFF}), stores)
    client = Client(off)
    enrolled = client.enrolment.enrol(FILLER)
    assert (enrolled.credentials, enrolled.credentials_note) == (None, None)
    assert client.credentials.get(FILLER).state is CredentialState.NONE
    with pytest.raises(Conflict, match="broker_dynamic_security is off"):
        client.credentials.rotate(FILLER)
    assert client.credentials.revoke(FILLER, reason="x").state is CredentialState.NONE
    told = client.health.status()
    assert told.broker.secured is False
    assert "accepts unauthenticated clients" in told.warnings["broker_open"]


@pytest.fixture
def running(service: Service) -> Iterator[Service]:
    service.start()
    yield service
    service.stop()


def test_status_names_who_is_locked_out(running: Service, client: Client, guarded: GuardedMosquitto) -> None:
    wait_until(lambda: client.health.status().broker.secured, "the broker was asked")
    assert "broker_open" not in client.health.status().warnings
    kept = guarded.memory.read_bytes()
    client.enrolment.enrol(FILLER)
    guarded.kill()
    guarded.memory.write_bytes(kept)
    guarded.start()
    wait_until(lambda: "locked_out" in client.health.status().warnings, "the loss was noticed", 60)
    assert FILLER in client.health.status().warnings["locked_out"]
    told = client.credentials.get(FILLER)
    assert told.state is CredentialState.LOCKED_OUT
    assert told.note
    assert "rotate" in told.note
    client.credentials.rotate(FILLER)
    assert "locked_out" not in client.health.status().warnings
    assert running.health().errors == {}
