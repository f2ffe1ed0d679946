"""What other processes tell, brought to the parts of this one that want to know."""

from dataclasses import dataclass

from service.auth.authenticator import Authenticator
from service.forecasts.base_rates import BaseRates
from service.forecasts.cache import ForecastCache
from service.forecasts.champion import ChampionCache
from service.learning.enrolment_service import EnrolmentService
from service.learning.job_watch import JobWatch
from service.machines.machine_cache import MachineCache
from service.machines.store import MachineStore
from service.messaging.change_event import ChangeEvent, ChangeKind
from service.messaging.pubsub import AlarmEvent, EventBus
from service.notifications.service import NotificationService
from wire.identity import MachineId


@dataclass(frozen=True)
class RemoteChangeHandler:
    """Every part that remembers something which another process may change."""

    machines: MachineStore
    registry: MachineCache
    newest: ForecastCache
    base_rates: BaseRates
    champion: ChampionCache
    feed: EventBus
    access: Authenticator
    notify: NotificationService
    enrolment: EnrolmentService
    job_watch: JobWatch

    def handle(self, signal: ChangeEvent) -> None:
        """Let whoever it concerns look again."""
        if signal.kind is ChangeKind.EVENTS_STORED:
            self._arrived(signal)
        elif signal.kind is ChangeKind.CHAMPION_CHANGED:
            self.champion.invalidate()
            self._touch_all()  # so that whoever asks next is answered by the new one
        elif signal.kind is ChangeKind.PERMISSIONS_CHANGED:
            self.access.invalidate_local()
        elif signal.kind is ChangeKind.HISTORY_LOADED:
            self.enrolment.invalidate()
        elif signal.kind is ChangeKind.SUPPRESSION_CHANGED:
            self.notify.reevaluate(signal.body["site"], signal.body["machine"])
        elif signal.kind is ChangeKind.JOBS:
            self.job_watch.changed()

    def invalidate_all(self) -> None:
        """Look at everything again: there was a time in which nothing was heard."""
        self.access.invalidate_local()
        self.champion.invalidate()
        self.enrolment.invalidate()
        self._touch_all()

    def _touch_all(self) -> None:
        self.newest.invalidate(machine.id for machine in self.machines.all())

    def _arrived(self, signal: ChangeEvent) -> None:
        body = signal.body
        known = (self.registry.find(MachineId.parse(name)) for name in body.get("late", ()))
        self.base_rates.note_late(machine for machine in known if machine)
        touched = [MachineId.parse(name) for name in body.get("machines", ())]
        if touched:
            self.newest.invalidate(touched)
        alarms = [AlarmEvent(MachineId.parse(name), at_us, code) for name, at_us, code in body.get("alarms", ())]
        if alarms or body.get("missed"):
            self.feed.publish_remote(alarms, missed=body.get("missed", 0))
