"""From an MQTT message to validated events, one commit and an ack."""
