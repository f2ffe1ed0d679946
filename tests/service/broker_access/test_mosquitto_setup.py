"""The first files of a guarded broker: Mosquitto has nothing to object, and the tuning is that of the open one."""

import json
from pathlib import Path

from service.broker_access.mosquitto_setup import Listener, configuration, find_plugin, initial_state
from tests.conftest import wait_until
from tests.support.secured_broker import GuardedMosquitto, trying

REPOSITORY = Path(__file__).parents[3]
TUNING = {
    "autosave_interval",
    "max_inflight_messages",
    "max_packet_size",
    "max_queued_bytes",
    "max_queued_messages",
    "persistence",
    "persistent_client_expiration",
    "set_tcp_nodelay",
    "sys_interval",
}


def lines(text: str) -> dict[str, str]:
    told = [line.partition(" ") for line in text.splitlines() if line and not line.startswith("#")]
    return {name: value for name, _, value in told}


def test_mosquitto_finds_nothing_to_warn_about(guarded: GuardedMosquitto) -> None:
    log = guarded.folder / "mosquitto.log"
    wait_until(lambda: "running" in log.read_text(), "it runs")
    said = [line for line in log.read_text().splitlines() if "run as root" not in line]  # that is the test's doing
    assert not [line for line in said if "Warning" in line or "Error" in line or "Note:" in line]


def test_a_guarded_broker_is_tuned_as_the_open_one_is() -> None:
    ours = lines(configuration(Listener(1883), data=Path("/data"), plugin=find_plugin()))
    deployed = lines((REPOSITORY / "deploy/mosquitto/mosquitto.conf").read_text(encoding="utf-8"))
    assert {name: ours[name] for name in TUNING} == {name: deployed[name] for name in TUNING}
    assert ours["allow_anonymous"] == "false"


def test_a_listener_with_certificates_names_them_as_the_broker_sees_them() -> None:
    told = lines("\n".join(Listener(8883, None, Path("/tls"), require_client_certificates=True).lines()))
    assert told["listener"] == "8883"
    assert (told["certfile"], told["keyfile"]) == ("/tls/broker.pem", "/tls/broker.key")
    assert told["require_certificate"] == "true"


def test_neither_password_stands_in_the_plugins_memory() -> None:
    text = json.dumps(initial_state(admin_password="first secret", service_password="second secret"))  # noqa: S106
    assert "secret" not in text


def test_the_service_may_do_its_work_and_read_no_machines_acks(guarded: GuardedMosquitto) -> None:
    with trying(guarded, "alarmcast-service", guarded.password(), "alarmcast-service") as service:
        for allowed in (
            "alarmcast/v1/+/+/events",
            "alarmcast/v1/+/+/state",
            "$SYS/broker/publish/messages/dropped",
        ):
            assert service.subscribe(allowed) == "Granted QoS 1"
        for channel in ("acks", "forecast", "state"):
            assert service.publish(f"alarmcast/v1/plant/m/{channel}") != "Not authorized"
        assert service.subscribe("alarmcast/v1/+/+/acks") == "Not authorized"
        assert service.subscribe("#") == "Not authorized"
        # Last, because Mosquitto hangs up after it has refused a message.
        assert service.publish("alarmcast/v1/plant/m/events") == "Not authorized"
