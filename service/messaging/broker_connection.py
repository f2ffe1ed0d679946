"""Create paho clients for the broker, and test whether it accepts the service."""

from threading import Event
from typing import Any
from uuid import uuid4

import paho.mqtt.client as mqtt
from paho.mqtt.enums import CallbackAPIVersion, MQTTProtocolVersion
from paho.mqtt.reasoncodes import ReasonCode

from service.errors import InputRejected
from service.messaging.mqtt_socket import Client
from service.settings import Settings
from wire.broker_check import speaks_tls, tls_context
from wire.mqtt import BrokerConfig
from wire.topics import Channel, every_machine


def broker_config(settings: Settings) -> BrokerConfig:
    """Return how to reach the broker."""
    return BrokerConfig(
        host=settings.broker_host,
        port=settings.broker_port,
        version=settings.broker_mqtt_version,
        username=settings.broker_username,
        password=settings.broker_password,
        tls=settings.broker_tls,
        tls_ca=settings.broker_tls_ca,
        tls_cert=settings.broker_tls_cert,
        tls_key=settings.broker_tls_key,
    )


def create_client(broker: BrokerConfig, client_id: str, **options: Any) -> mqtt.Client:
    """Return a client that is not connected yet; ``options`` are paho's own."""
    protocol = MQTTProtocolVersion.MQTTv5 if broker.is_v5 else MQTTProtocolVersion.MQTTv311
    client = Client(CallbackAPIVersion.VERSION2, client_id=client_id, protocol=protocol, **options)
    if broker.username is not None:
        client.username_pw_set(broker.username, broker.password)
    if broker.tls:
        try:
            client.tls_set_context(tls_context(broker))
        except OSError as error:  # ssl.SSLError is one too
            raise InputRejected(
                f"The TLS files for the broker cannot be used: {error.strerror or error}. See the settings "
                "broker_tls_ca, broker_tls_cert and broker_tls_key."
            ) from None
    client.suppress_exceptions = True  # an exception in a callback would end paho's thread for good
    return client


def tls_hint(broker: BrokerConfig) -> str | None:
    """Return what to set if the broker's port speaks TLS and the service does not: it only closes connections."""
    return None if broker.tls or not speaks_tls(broker.host, broker.port) else needs_tls(broker)


def needs_tls(broker: BrokerConfig) -> str:
    """Return the message for a port that speaks TLS while the service does not."""
    return (
        f"the broker's port {broker} speaks TLS and the service does not: set ALARMCAST_BROKER_TLS=true, "
        "and ALARMCAST_BROKER_TLS_CA if a private authority signed its certificate"
    )


def connection_error(broker: BrokerConfig, *, client_id: str, seconds: float) -> str | None:
    """Return why the broker rejects a connection and subscription, or None if it accepts them.

    Uses a client id of its own and no session: of two clients with one id the broker drops the first.
    """
    session = {} if broker.is_v5 else {"clean_session": True}
    client = create_client(broker, f"{client_id}-check-{uuid4().hex[:8]}", **session)
    answered, errors = Event(), ["it does not answer in this version of MQTT"]

    def on_connect(client: mqtt.Client, _data: Any, _flags: Any, reason: ReasonCode, _properties: Any) -> None:
        if reason.is_failure:
            errors[:] = [f"it refuses the connection: {reason}"]
            answered.set()
        else:
            errors[:] = ["it does not answer a subscription"]
            client.subscribe(every_machine(Channel.STATE), qos=1)

    def on_subscribe(_c: mqtt.Client, _data: Any, _mid: int, reasons: list[ReasonCode], _p: Any) -> None:
        errors[:] = [f"it refuses a subscription: {reason}" for reason in reasons if reason.is_failure]
        answered.set()

    client.on_connect, client.on_subscribe = on_connect, on_subscribe
    try:
        client.connect(broker.host, broker.port, keepalive=10)
    except (OSError, ValueError) as error:
        return str(error)
    client.loop_start()
    answered.wait(seconds)
    client.disconnect()
    client.loop_stop()
    return errors[0] if errors else None
