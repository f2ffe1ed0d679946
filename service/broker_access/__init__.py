"""Credentials of machines at the MQTT broker: dynamic security, certificates, edge.toml."""
