"""The page of one machine: forecast, contributing factors, alarm history, forecast accuracy."""
