"""Credentials taken away under load, and a broker that comes back from before they were issued."""

import time
from collections.abc import Iterator

from tests.conftest import wait_until
from tests.faults.environment import FaultEnvironment, LoadedSystem, guarded, insist
from tests.faults.registry import Effort, fault
from tests.support.secured_broker import trying
from wire.enums import CredentialState

_KICKED_WITHIN = 1.0  # seconds, from the request to the end of the connection


@fault("credential revoked while live", quick=Effort(1), full=Effort(10))
def revoked_while_live(env: FaultEnvironment, effort: Effort) -> Iterator[float]:
    """A machine's credentials are revoked while it is there: it is thrown out, and comes back with new ones."""
    with env.system(machines=2, guarded=True) as system:
        revoked, other = system.agents
        for _ in range(effort.runs):
            system.recovered()
            took = _revoke(system, revoked)
            insist(took < _KICKED_WITHIN, f"a live session is thrown out within a second; it took {took:.2f} s")
            _still_taken(system, other)
            _back(system, revoked)
            system.recovered()
            yield took


def _revoke(system: LoadedSystem, machine: str) -> float:
    """Stand in for the agent with its own credentials, have them revoked, and return how long it was let be."""
    system.agents[machine].stop()
    issued = system.plant.api.credentials.rotate(machine)
    with trying(guarded(system), issued.username, issued.password) as agent:
        insist(agent.is_in, "a machine comes in with what was issued to it")
        started = time.monotonic()
        told = system.plant.api.credentials.revoke(machine, reason="stolen")
        insist(agent.gone.wait(30), "a live session is thrown out")
        took = time.monotonic() - started
    insist(told.state is CredentialState.REVOKED, "the service says that it is revoked")
    with trying(guarded(system), issued.username, issued.password) as agent:
        insist(not agent.is_in, "what was revoked lets nobody in")
    return took


def _still_taken(system: LoadedSystem, machine: str) -> None:
    before = system.stored().get(machine, 0)
    wait_until(lambda: system.stored().get(machine, 0) > before, "the other machine's alarms are taken on")


def _back(system: LoadedSystem, machine: str) -> None:
    """Issue new credentials and start the agent with them: the same machine, the same spool."""
    issued = system.plant.api.credentials.rotate(machine)
    shown = {"broker_username": issued.username, "broker_password": issued.password}
    system.agents[machine] = system.plant.agent(machine, system.load.logs[machine], **shown)
    system.agents[machine].start()


@fault("broker restored from before an enrolment", quick=Effort(1), full=Effort(5))
def restored_from_before(env: FaultEnvironment, effort: Effort) -> Iterator[float]:
    """The broker's memory of who may come in is from yesterday: the machine is reported, and rotating mends it."""
    with env.system(machines=1, guarded=True) as system:
        (machine,) = system.agents
        broker = guarded(system)
        for _ in range(effort.runs):
            system.recovered()
            broker.kill()
            memory = broker.holders()
            insist(f"alarmcast-edge/{machine}" in memory, "the broker knows the machine")
            broker.forget(machine)
            broker.start()
            started = time.monotonic()
            wait_until(lambda: _is_locked_out(system, machine), "the service notices", 60)
            system.agents[machine].stop()
            _back(system, machine)
            system.recovered()
            yield time.monotonic() - started


def _is_locked_out(system: LoadedSystem, machine: str) -> bool:
    return system.plant.api.credentials.get(machine).state is CredentialState.LOCKED_OUT
