"""The only MQTT in the service: messages in, acks and forecasts out."""
