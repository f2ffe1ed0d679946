"""The alarms page: alarm statistics by ISA-18.2, shelved alarms and maintenance windows."""

from service.page.alarms.page import alarms

__all__ = ["alarms"]
