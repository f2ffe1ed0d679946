"""One small process per machine: from the machine's alarms, through a spool, to MQTT."""

__version__ = "0.1.0"
