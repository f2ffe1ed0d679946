"""Runs the flows that nobody asks for: what the plant clock calls for."""
