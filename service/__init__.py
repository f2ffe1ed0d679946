"""The central service: stores alarms, forecasts the next ones, and learns new machines."""

__version__ = "0.1.0"
