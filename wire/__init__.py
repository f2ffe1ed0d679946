"""The contract both sides speak: what travels over MQTT between a machine's agent and the service."""
