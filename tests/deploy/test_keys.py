"""The keys of a composition: made once, each where only its holder is, whatever cuts the making off."""

import os
import ssl
from pathlib import Path
from queue import Queue
from socket import create_connection

import paho.mqtt.client as mqtt
import pytest
from paho.mqtt.enums import CallbackAPIVersion, MQTTProtocolVersion

from tests.conftest import require
from tests.deploy.keys import OVERLAID, VOLUMES, Keys
from tests.deploy.sandbox import USER

# Between the two commands of ours, and when all is made and nothing yet marked as done.
CUTS = ["alarmcast admin broker-init", 'mv "$service/broker-password.new"']


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Keys:
    made = Keys(tmp_path_factory.mktemp("keys"), (*VOLUMES, *OVERLAID))
    assert made.make() == 0
    return made


def test_each_holder_has_what_it_needs_and_nothing_of_the_others(keys: Keys) -> None:
    assert set(keys.files()) == {
        *(f"authority/{name}" for name in ("admin-password", "api.key", "api.pem", "broker.key", "broker.pem")),
        *("authority/ca.key", "authority/ca.pem", "broker/mosquitto.conf", "broker/data/dynamic-security.json"),
        *(f"broker/tls/{name}" for name in ("broker.key", "broker.pem", "ca.pem")),
        *("service/ca.pem", "service/broker-password", "service/database-url", "database/password"),
        "grafana/password",
    }


def test_what_is_secret_only_its_holder_reads(keys: Keys) -> None:
    for name in keys.files():
        status = (keys.folder / name).stat()
        assert status.st_mode & 0o077 == 0, name
        if os.getuid() == 0 and name.startswith(("service/", "database/", "grafana/")):
            assert (status.st_uid, status.st_gid) == (USER, USER), name


def test_database_and_service_agree_on_a_password(keys: Keys) -> None:
    password = (keys.volume("database") / "password").read_text(encoding="utf-8").strip()
    url = (keys.volume("service") / "database-url").read_text(encoding="utf-8").strip()
    assert len(password) > 40
    assert url == f"postgresql+psycopg://alarmcast:{password}@database/alarmcast"


def test_making_them_twice_changes_nothing(keys: Keys) -> None:
    before = keys.files()
    assert keys.make() == 0
    assert keys.files() == before


def test_a_database_that_joins_later_gets_its_password_and_nothing_else_changes(
    keys: Keys, tmp_path: Path
) -> None:
    later = keys.copy(tmp_path / "later")
    (later.volume("service") / "database-url").unlink()
    (later.volume("database") / "password").unlink()
    before = later.files()
    assert later.make() == 0
    assert set(later.files()) - set(before) == {"service/database-url", "database/password"}
    assert before.items() <= later.files().items()


RENEWED = {"authority/api.key", "authority/api.pem", "authority/broker.key", "authority/broker.pem"}
HANDED_ON = {"broker/tls/broker.key", "broker/tls/broker.pem"}


@pytest.mark.parametrize("step", [None, 'mv "$broker/tls/broker.key.new"', 'mv "$broker/tls/broker.pem.new"'])
def test_a_certificate_that_was_renewed_reaches_the_broker_whatever_cuts_that_off(
    keys: Keys, tmp_path: Path, step: str | None
) -> None:
    renewed = keys.copy(tmp_path / "renewed")
    before = renewed.files()
    assert renewed.alarmcast("admin", "tls-init", str(renewed.volume("authority")), "--renew") == 0
    if step is not None:
        assert renewed.make(until=step) != 0
    assert renewed.make() == 0
    after = renewed.files()
    assert set(after) == set(before)
    assert {name for name in after if after[name] != before[name]} == RENEWED | HANDED_ON
    for name in HANDED_ON:
        file = renewed.folder / name
        assert after[name] == after[f"authority/{file.name}"]
        assert file.stat().st_mode & 0o077 == 0
        if os.getuid() == 0:
            assert file.owner() == "mosquitto"


@pytest.mark.parametrize("step", CUTS)
def test_cut_off_anywhere_they_are_made_whole_the_next_time(keys: Keys, tmp_path: Path, step: str) -> None:
    cut = Keys(tmp_path / "cut", keys.volumes)
    assert cut.make(until=step) != 0
    assert cut.make() == 0
    assert set(cut.files()) == set(keys.files())


def test_the_broker_that_was_given_them_proves_who_it_is_and_lets_nobody_in_unasked(keys: Keys) -> None:
    require(Path("/usr/sbin/mosquitto").exists(), "mosquitto")
    broker = keys.broker()
    try:
        trusting = ssl.create_default_context(cafile=keys.volume("service") / "ca.pem")
        for name in ("mosquitto", "service", "127.0.0.1"):
            with (
                create_connection(("127.0.0.1", broker.port)) as line,
                trusting.wrap_socket(line, server_hostname=name),
            ):
                pass
        answers: Queue[str] = Queue()
        stranger = mqtt.Client(CallbackAPIVersion.VERSION2, protocol=MQTTProtocolVersion.MQTTv5)
        stranger.tls_set(str(keys.volume("service") / "ca.pem"))
        stranger.on_connect = lambda *told: answers.put(str(told[3]))
        stranger.connect("127.0.0.1", broker.port)
        stranger.loop_start()
        assert answers.get(timeout=20) == "Not authorized"
        stranger.loop_stop()
    finally:
        broker.stop()
