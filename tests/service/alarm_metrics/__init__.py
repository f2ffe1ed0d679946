"""alarm_metrics."""
