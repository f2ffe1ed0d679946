"""Alarm-management metrics after ISA-18.2, the timeline and CSV export."""
