"""Options of sources that read from the plant's own MQTT broker."""

from datetime import timedelta
from pathlib import Path
from urllib.parse import urlsplit

from pydantic import Field

from edge_agent.errors import ConfigRejected
from edge_agent.sources.signals import Options
from wire.mqtt import BrokerConfig, MqttVersion

KEEPALIVE_S = 15
UNNOTICED = timedelta(seconds=2 * KEEPALIVE_S)  # until a connection without an answer counts as lost


class PlantBrokerOptions(Options):
    """Address and credentials of the broker; the password comes from the environment."""

    url: str = Field(pattern=r"^mqtts?://")
    username: str | None = None
    tls_ca: Path | None = None
    version: MqttVersion = MqttVersion.V5

    def broker(self, password: str | None) -> BrokerConfig:
        """Return the broker, or raise :class:`ConfigRejected` for a URL without a host."""
        address = urlsplit(self.url)
        if address.hostname is None:
            raise ConfigRejected(f"The url {self.url} has no host; write mqtt://HOST:1883.")
        if self.tls_ca is not None and not self.tls_ca.is_file():
            raise ConfigRejected(f"There is no file {self.tls_ca}; correct tls_ca.")
        secure = address.scheme == "mqtts"
        port = address.port or (8883 if secure else 1883)
        return BrokerConfig(address.hostname, port, self.version, self.username, password, secure, self.tls_ca)
