"""What other processes tell, brought to the parts of this one that want to know."""

from dataclasses import dataclass

from service.core.signal import Kind, Signal
from service.flows.access import Access
from service.flows.base_rates import BaseRates
from service.flows.champion import Champion
from service.flows.enrol import Enrolment
from service.flows.feed import Feed, Raised
from service.flows.job_watch import JobWatch
from service.flows.newest import NewestForecasts
from service.flows.notify import Notify
from service.flows.registry import Registry
from service.store.machines import MachineStore
from wire.identity import MachineId


@dataclass(frozen=True)
class Hearsay:
    """Every part that remembers something which another process may change."""

    machines: MachineStore
    registry: Registry
    newest: NewestForecasts
    base_rates: BaseRates
    champion: Champion
    feed: Feed
    access: Access
    notify: Notify
    enrolment: Enrolment
    job_watch: JobWatch

    def heard(self, signal: Signal) -> None:
        """Let whoever it concerns look again."""
        if signal.kind is Kind.ARRIVED:
            self._arrived(signal)
        elif signal.kind is Kind.CHAMPION:
            self.champion.look_again()
            self._touch_all()  # so that whoever asks next is answered by the new one
        elif signal.kind is Kind.RIGHTS:
            self.access.forget_here()
        elif signal.kind is Kind.LOADED:
            self.enrolment.look_again()
        elif signal.kind is Kind.HUSHED:
            self.notify.again(signal.body["site"], signal.body["machine"])
        elif signal.kind is Kind.JOBS:
            self.job_watch.changed()

    def missed_some(self) -> None:
        """Look at everything again: there was a time in which nothing was heard."""
        self.access.forget_here()
        self.champion.look_again()
        self.enrolment.look_again()
        self._touch_all()

    def _touch_all(self) -> None:
        self.newest.touch(machine.id for machine in self.machines.all())

    def _arrived(self, signal: Signal) -> None:
        body = signal.body
        known = (self.registry.find(MachineId.parse(name)) for name in body.get("late", ()))
        self.base_rates.note_late(machine for machine in known if machine)
        touched = [MachineId.parse(name) for name in body.get("machines", ())]
        if touched:
            self.newest.touch(touched)
        alarms = [Raised(MachineId.parse(name), at_us, code) for name, at_us, code in body.get("alarms", ())]
        if alarms or body.get("missed"):
            self.feed.relay(alarms, missed=body.get("missed", 0))
