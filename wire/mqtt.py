"""How to reach the MQTT broker: the connection settings that agent and service share."""

from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path


class MqttVersion(StrEnum):
    """The MQTT version; never a silent fallback, because 3.1.1 hides refused publishes."""

    V5 = "5"
    V311 = "3.1.1"


@dataclass(frozen=True)
class BrokerConfig:
    """Address, credentials and TLS files of the broker."""

    host: str
    port: int
    version: MqttVersion = MqttVersion.V5
    username: str | None = None
    password: str | None = field(default=None, repr=False)
    tls: bool = False
    tls_ca: Path | None = None
    tls_ca_pem: str | None = None
    tls_cert: Path | None = None
    tls_key: Path | None = None

    @property
    def is_v5(self) -> bool:
        """Whether the broker reports refused publishes."""
        return self.version is MqttVersion.V5

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"
