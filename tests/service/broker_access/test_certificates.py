"""A private authority: what it signs is trusted, keys stay with their owner, and nothing is overwritten."""

import socket
import ssl
from datetime import UTC, datetime, timedelta
from pathlib import Path
from threading import Thread

import pytest

from service.broker_access.certificates import Authority, expires_at
from service.errors import Conflict, InputRejected

NOW = datetime.now(UTC)
HOSTS = ["plant.example", "10.0.0.7", "localhost"]


def made(folder: Path, *, clients: tuple[str, ...] = (), now: datetime = NOW) -> Authority:
    authority = Authority(folder, now)
    authority.create(hosts=HOSTS, clients=clients)
    return authority


def greeting(folder: Path, host: str, *, server: str = "broker", client: str | None = None) -> str:
    """Return what comes of a greeting: the name of the peer, or why there was none."""
    serving = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    serving.load_cert_chain(folder / f"{server}.pem", folder / f"{server}.key")
    serving.load_verify_locations(folder / "ca.pem")
    serving.verify_mode = ssl.CERT_REQUIRED if client else ssl.CERT_NONE
    asking = ssl.create_default_context(cafile=folder / "ca.pem")
    if client and client != "nobody":
        asking.load_cert_chain(folder / f"{client}.pem", folder / f"{client}.key")
    ours, theirs = socket.socketpair()
    told: list[str] = []

    def serve() -> None:
        try:
            with serving.wrap_socket(theirs, server_side=True) as secured:
                told.append(str(dict(x[0] for x in (secured.getpeercert() or {}).get("subject", ()))))  # type: ignore[misc]
                secured.send(b"x")
        except ssl.SSLError as error:
            told.append(str(error.reason))

    thread = Thread(target=serve, daemon=True)
    thread.start()
    try:
        with asking.wrap_socket(ours, server_hostname=host) as secured:
            secured.recv(1)
    except ssl.SSLError as error:
        told.insert(0, str(getattr(error, "verify_message", "") or error.reason))
    thread.join(10)
    return told[0]


@pytest.mark.parametrize("server", ["broker", "api"])
@pytest.mark.parametrize("host", HOSTS)
def test_broker_and_api_are_trusted_by_every_name_they_were_given(tmp_path: Path, server: str, host: str) -> None:
    made(tmp_path)
    assert greeting(tmp_path, host, server=server) == "{}"


def test_under_another_name_they_are_not(tmp_path: Path) -> None:
    made(tmp_path)
    assert "mismatch" in greeting(tmp_path, "other.example")


def test_a_client_shows_who_it_is_and_a_server_cannot_pass_for_one(tmp_path: Path) -> None:
    made(tmp_path, clients=("filler",))
    assert greeting(tmp_path, "localhost", client="client-filler") == "{'commonName': 'filler'}"
    assert "PURPOSE" in greeting(tmp_path, "localhost", client="api").upper() or "CERTIFICATE" in greeting(
        tmp_path, "localhost", client="api"
    )
    assert "CERTIFICATE" in greeting(tmp_path, "localhost", client="nobody").upper()


def test_keys_are_their_owners_alone(tmp_path: Path) -> None:
    made(tmp_path, clients=("filler",))
    modes = {file.name: file.stat().st_mode & 0o777 for file in tmp_path.iterdir()}
    assert {name for name, mode in modes.items() if mode == 0o600} == {
        "ca.key",
        "broker.key",
        "api.key",
        "client-filler.key",
    }
    assert not [name for name in modes if name.endswith(".new")]


def test_what_is_there_is_not_overwritten_and_what_is_missing_is_added(tmp_path: Path) -> None:
    authority = made(tmp_path, clients=("filler",))
    before = {file: file.read_bytes() for file in tmp_path.iterdir()}
    with pytest.raises(Conflict, match="--renew"):
        authority.create(hosts=HOSTS, clients=["filler"])
    authority.create(hosts=HOSTS, clients=["filler", "capper"])
    assert {file: file.read_bytes() for file in before} == before
    assert greeting(tmp_path, "localhost", client="client-capper") == "{'commonName': 'capper'}"


def test_a_key_without_its_certificate_is_not_overwritten_either(tmp_path: Path) -> None:
    (tmp_path / "broker.key").write_text("mine")
    with pytest.raises(Conflict, match=r"broker\.key is there already"):
        made(tmp_path)
    assert (tmp_path / "broker.key").read_text() == "mine"
    assert not (tmp_path / "ca.pem").exists()


def test_renewing_keeps_names_and_authority_and_begins_anew(tmp_path: Path) -> None:
    old = NOW - timedelta(days=720)
    made(tmp_path, clients=("filler",), now=old)
    authority = (tmp_path / "ca.pem").read_bytes()
    assert expires_at(tmp_path / "api.pem") < NOW + timedelta(days=11)
    renewed = Authority(tmp_path, NOW).renew()
    assert {pair.name for pair in renewed} == {"broker", "api", "client-filler"}
    for pair in renewed:
        assert expires_at(pair.certificate) > NOW + timedelta(days=700)
        assert pair.key.stat().st_mode & 0o777 == 0o600
    assert (tmp_path / "ca.pem").read_bytes() == authority
    assert greeting(tmp_path, "10.0.0.7", client="client-filler") == "{'commonName': 'filler'}"


def test_nothing_outlives_its_authority(tmp_path: Path) -> None:
    made(tmp_path, now=NOW - timedelta(days=3600))
    Authority(tmp_path, NOW).renew()
    assert expires_at(tmp_path / "api.pem") <= expires_at(tmp_path / "ca.pem")
    with pytest.raises(InputRejected, match="ended on"):
        Authority(tmp_path, NOW + timedelta(days=60)).renew()


def test_a_folder_without_certificates_cannot_be_renewed(tmp_path: Path) -> None:
    with pytest.raises(InputRejected, match="no certificates to renew"):
        Authority(tmp_path, NOW).renew()


def test_a_name_that_dns_cannot_have_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputRejected, match="no host name"):
        Authority(tmp_path, NOW).create(hosts=["plänt"], clients=[])


def test_what_is_no_certificate_is_said(tmp_path: Path) -> None:
    (tmp_path / "x.pem").write_text("no")
    with pytest.raises(InputRejected, match="cannot be read as a certificate"):
        expires_at(tmp_path / "x.pem")
