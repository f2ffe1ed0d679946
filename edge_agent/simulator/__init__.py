"""A fleet of packaging machines made of arithmetic alone, for agents that have no real machine at hand.

Its catalogue and its log writer are modules of their own: an agent that only watches need not load them.
"""

from edge_agent.simulator.profile import MachineProfile, machine_profile
from edge_agent.simulator.stream import alarms

__all__ = ["MachineProfile", "alarms", "machine_profile"]
