"""Build the credential service from the settings."""

from collections.abc import Callable
from dataclasses import dataclass

from service.broker_access.dynamic_security import DynamicSecurityClient
from service.broker_access.edge_toml import AgentAccess
from service.broker_access.service import CredentialService
from service.broker_access.store import CredentialStore
from service.broker_access.thread import Reconciler
from service.errors import InputRejected
from service.machines.store import MachineStore
from service.messaging.broker_connection import broker_config
from service.messaging.mqtt_client import MqttClient
from service.settings import DynamicSecurity, Settings
from wire.clock import PlantClock


@dataclass(frozen=True)
class BrokerAccess:
    """The machines' MQTT credentials, and the thread that reconciles them with the broker."""

    credentials: CredentialService
    reconciler: Reconciler


def build(
    settings: Settings, machines: MachineStore, clock: PlantClock, mqtt: MqttClient, is_leader: Callable[[], bool]
) -> BrokerAccess:
    """Build the feature."""
    store, access = CredentialStore(machines.database), agent_access(settings)
    credentials = CredentialService(machines, store, dynamic_security(settings), clock, access)
    reconciler = Reconciler(credentials, connections=lambda: mqtt.connect_count, is_leader=is_leader)
    return BrokerAccess(credentials, reconciler)


def dynamic_security(settings: Settings) -> DynamicSecurityClient | None:
    """Return the client of the broker's dynamic security; None if it is turned off."""
    if settings.broker_dynamic_security is DynamicSecurity.OFF:
        return None
    return DynamicSecurityClient(broker_config(settings), client_id=settings.broker_client_id)


def agent_access(settings: Settings) -> AgentAccess:
    """Return the broker's address for agents, as written to their edge.toml."""
    tls = settings.broker_tls if settings.broker_public_tls is None else settings.broker_public_tls
    ca = settings.broker_tls_ca if tls else None
    try:
        authority = None if ca is None else ca.read_text(encoding="ascii")
    except (OSError, UnicodeDecodeError) as error:
        raise InputRejected(f"Cannot read {ca}, the setting broker_tls_ca: {error}.") from None
    return AgentAccess(
        settings.broker_public_host or settings.broker_host,
        settings.broker_public_port or settings.broker_port,
        tls,
        authority,
        settings.broker_mqtt_version.value,
    )
