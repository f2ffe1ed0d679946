"""What became of forecasts: outcomes and the scoreboard."""
