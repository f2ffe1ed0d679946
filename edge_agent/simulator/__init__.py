"""A simulated fleet of packaging machines.

Catalogue and log writer are separate modules, which an agent need not load.
"""

from edge_agent.simulator.profile import MachineProfile, machine_profile
from edge_agent.simulator.stream import alarms

__all__ = ["MachineProfile", "alarms", "machine_profile"]
