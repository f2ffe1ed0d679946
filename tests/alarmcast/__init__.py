"""alarmcast."""
