"""MQTT client, change events between processes, leases and the registry of processes."""
