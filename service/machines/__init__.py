"""Registered machines, their stored events, catalogue, agents' state and silence detection."""
