"""Beyond loopback only in front of a guarded broker, and with certificates that are whole and not about to end."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from service.app.config_check import require_secured_broker
from service.app.configuration import load_settings
from service.app.http_server import is_loopback, tls_options
from service.app.warnings import CertificateExpiry
from service.broker_access.certificates import Authority
from service.errors import InputRejected
from service.settings import Settings
from tests.conftest import Mosquitto, free_port
from tests.support.secured_broker import GuardedMosquitto

NOW = datetime.now(UTC)


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.8.8", "::1", "localhost"])
def test_loopback_is_this_computer_alone(host: str) -> None:
    assert is_loopback(host)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "10.0.0.7", "192.0.2.1", "nowhere.invalid"])  # noqa: S104
def test_everything_else_may_be_reached_from_elsewhere(host: str) -> None:
    assert not is_loopback(host)


def exposed(port: int, **more: object) -> Settings:
    return load_settings(host="0.0.0.0", broker_port=port, **more)  # noqa: S104


def test_an_open_broker_is_refused_beyond_loopback_unless_told(mosquitto: Mosquitto) -> None:
    with pytest.raises(InputRejected, match=r"Refusing to listen on 0\.0\.0\.0: anyone .*ALLOW_OPEN_BROKER=true"):
        require_secured_broker(exposed(mosquitto.port))
    require_secured_broker(exposed(mosquitto.port, allow_open_broker=True))
    require_secured_broker(load_settings(broker_port=mosquitto.port))


def test_a_guarded_broker_is_fine(guarded: GuardedMosquitto) -> None:
    told = {"broker_username": guarded.address.username, "broker_password": guarded.password()}
    require_secured_broker(exposed(guarded.port, **told))


def test_security_that_is_switched_off_is_refused_without_asking() -> None:
    with pytest.raises(InputRejected, match="broker_dynamic_security is off"):
        require_secured_broker(exposed(free_port(), broker_dynamic_security="off"))


def test_a_broker_that_does_not_answer_is_waited_for_and_then_refused() -> None:
    with pytest.raises(InputRejected, match=r"it is unknown whether .* Start the broker first"):
        require_secured_broker(exposed(free_port()), timeout_s=0.1)
    require_secured_broker(exposed(free_port(), broker_dynamic_security="on"))


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"tls_cert": "x"}, "tls_cert and tls_key go together"),
        ({"broker_tls": True, "broker_tls_key": "x"}, "broker_tls_cert and broker_tls_key go together"),
        ({"broker_tls_cert": "x", "broker_tls_key": "y"}, "without broker_tls"),
    ],
)
def test_a_certificate_without_its_key_is_refused(given: dict[str, object], words: str) -> None:
    with pytest.raises(InputRejected, match=words):
        load_settings(**given)


def test_a_certificate_that_cannot_be_used_is_one_sentence(tmp_path: Path) -> None:
    Authority(tmp_path, NOW).create(hosts=["localhost"], clients=[])
    mixed = load_settings(tls_cert=tmp_path / "api.pem", tls_key=tmp_path / "broker.key")
    with pytest.raises(InputRejected, match="certificate cannot be used"):
        tls_options(mixed)
    missing = load_settings(tls_cert=tmp_path / "none.pem", tls_key=tmp_path / "api.key")
    with pytest.raises(InputRejected, match="No such file"):
        tls_options(missing)
    assert tls_options(load_settings()) == {}


@pytest.mark.parametrize(("days", "word"), [(29, "expires"), (-1, "expired"), (31, None)])
def test_a_month_before_a_certificate_ends_status_says_so(tmp_path: Path, days: int, word: str | None) -> None:
    Authority(tmp_path, NOW).create(hosts=["localhost"], clients=["service"])
    settings = load_settings(
        tls_cert=tmp_path / "api.pem",
        tls_key=tmp_path / "api.key",
        broker_tls=True,
        broker_tls_ca=tmp_path / "ca.pem",
        broker_tls_cert=tmp_path / "client-service.pem",
        broker_tls_key=tmp_path / "client-service.key",
    )
    then = NOW + timedelta(days=730 - days)
    expiry = CertificateExpiry(settings, broker=lambda: None, now=lambda: then)
    told = expiry.warnings()
    if word is None:
        assert told == {}
        return
    assert f"The API's certificate {word} on" in told["certificates"]
    assert f"The service's client certificate at the broker {word} on" in told["certificates"]
    assert "The CA" not in told["certificates"]
    Authority(tmp_path, then).renew()
    assert expiry.warnings() == {}, "files are read again when they change"


def test_the_brokers_own_certificate_is_watched_too() -> None:
    expiry = CertificateExpiry(load_settings(), broker=lambda: NOW + timedelta(days=3), now=lambda: NOW)
    assert expiry.warnings()["certificates"].startswith("The broker's certificate expires on")
