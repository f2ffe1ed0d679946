"""Webhooks over real HTTP: signed, retried, given up, never lost, and no receiver waits for another."""

import socket
import ssl
from collections.abc import Iterator
from contextlib import closing, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from ipaddress import ip_network
from pathlib import Path
from threading import Event, Thread

import httpx
import pytest

from service.broker_access.certificates import Authority
from service.database.engine import Database
from service.learning.enrolment_store import EnrolmentStore
from service.machines.catalogue import CatalogueEntry
from service.machines.catalogue_store import CatalogueStore
from service.machines.models import Machine
from service.notifications.models import Notification, NotificationChanges, NotificationQuery
from service.notifications.store import DeliveryStore, NotificationStore, WebhookStore
from service.notifications.thread import WebhookSender
from service.notifications.webhook import AllowedAddresses, Webhook, WebhookDelivery
from service.notifications.webhook_client import WebhookClient
from tests.conftest import free_port, wait_until
from tests.service.conftest import FILLER, NOW, enrolled
from tests.support.webhook_receiver import HANG, Receiver
from wire.enums import DeliveryState, Severity
from wire.rest.catalogue import AlarmResponse
from wire.signature import verify

HOUR = timedelta(hours=1)
HERE = AllowedAddresses((ip_network("127.0.0.0/8"), ip_network("::1/128")))
SECRET = "whsec_of-a-test"  # noqa: S105 - not one


@dataclass
class Harness:
    """An outbox on disk, a real receiver, and a wall clock that a test sets."""

    file: Path
    receiver: Receiver
    now: datetime = field(default_factory=lambda: datetime.now(UTC).replace(microsecond=0))
    senders: list[WebhookSender] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.database = Database(f"sqlite:///{self.file}")
        self.database.upgrade()
        self.filler: Machine = enrolled(EnrolmentStore(self.database), FILLER)

    @property
    def outbox(self) -> DeliveryStore:
        return DeliveryStore(self.database)

    def hook(self, path: str = "/", *, url: str | None = None) -> Webhook:
        made = Webhook(
            0, url or self.receiver.url(path), SECRET, Severity.LOW, None, None, enabled=True, created_at=NOW
        )
        return WebhookStore(self.database).add(made, who="test", reason=None)

    def open(self, *codes: int) -> None:
        made = [
            (
                self.filler.row_id,
                Notification(0, FILLER, code, "Film torn", "high", NOW, NOW + 8 * HOUR, 0.7, 0.4, "v1", NOW),
            )
            for code in codes
        ]
        NotificationStore(self.database).write(NotificationChanges(opened=made), at=NOW, wall=self.now)

    def sender(self, *, seconds: float = 5.0) -> WebhookSender:
        """Return a sender that is new in every respect, as after a restart."""
        made = WebhookSender(
            self.outbox,
            WebhookClient(timeout=seconds, wall=self.seconds, agent="Alarmcast/test", allowed=HERE),
            wall=lambda: self.now,
            plant=lambda: NOW,
            chance=lambda: 0.5,
            interval=0.01,
        )
        self.senders.append(made)
        return made

    def seconds(self) -> float:
        return self.now.timestamp()

    def start(self, *, seconds: float = 5.0) -> WebhookSender:
        sender = self.sender(seconds=seconds)
        sender.start()
        return sender

    def deliveries(self) -> list[WebhookDelivery]:
        numbers = [one.id for one in NotificationStore(self.database).page(NotificationQuery())]
        found = self.outbox.for_notifications(numbers).values()
        return sorted((one for several in found for one in several), key=lambda one: one.id)

    def states(self) -> list[DeliveryState]:
        return [one.state for one in self.deliveries()]


@pytest.fixture
def harness(tmp_path: Path) -> Iterator[Harness]:
    receiver = Receiver()
    made = Harness(tmp_path / "alarmcast.sqlite3", receiver)
    yield made
    receiver.close()
    for sender in made.senders:
        sender.stop()
    made.database.close()


DELIVERED, WAITING, GIVEN_UP = DeliveryState.DELIVERED, DeliveryState.WAITING, DeliveryState.GIVEN_UP


def test_a_notification_arrives_signed_and_says_what_is_likely(harness: Harness) -> None:
    response = AlarmResponse(action="Splice the film")
    CatalogueStore(harness.database).put(CatalogueEntry(139, "Film torn", "high", target=True, response=response))
    harness.hook("/andon")
    harness.open(139)
    sender = harness.start()
    wait_until(lambda: harness.states() == [DELIVERED], "it is delivered")
    [letter] = harness.receiver.at("/andon")
    signature = letter.headers["Alarmcast-Signature"]
    assert verify(SECRET, signature, letter.body, now=harness.now.timestamp())
    assert not verify("another", signature, letter.body, now=harness.now.timestamp())
    assert not verify(SECRET, signature, letter.body, now=harness.now.timestamp() + 3600), "no replay for ever"
    [sent] = harness.deliveries()
    assert letter.headers["Alarmcast-Delivery"] == str(sent.key)
    assert letter.headers["Content-Type"] == "application/json"
    notice = letter.content["notification"]
    assert letter.content["event"] == "notification.opened"
    assert (notice["site"], notice["machine"], notice["code"]) == ("padova", "filler-1", 139)
    assert (notice["probability"], notice["severity"]) == (0.7, "high")
    assert notice["response"] == {"cause": None, "consequence": None, "action": "Splice the film", "link": None}
    assert sender.delivered == 1


def test_a_receiver_that_fails_gets_the_same_delivery_again_until_it_is_back(harness: Harness) -> None:
    harness.hook("/andon")
    harness.open(139)
    harness.receiver.answers["/andon"], harness.receiver.text = 503, b"down for\nmaintenance"
    sender = harness.start()
    for tries in (1, 2, 3):
        wait_until(lambda tries=tries: harness.deliveries()[0].attempts == tries, "it is tried")  # type: ignore[misc]
        wait_until(lambda: harness.deliveries()[0].status == 503, "the answer is kept")
        wait_until(lambda: harness.deliveries()[0].next_try != harness.now + timedelta(minutes=1), "it is settled")
        [sent] = harness.deliveries()
        assert (sent.state, sent.answer) == (WAITING, "Service Unavailable")
        assert sent.next_try
        assert sent.next_try > harness.now, "not at once"
        if tries == 3:
            harness.receiver.answers.clear()
        harness.now = max(sent.next_try, harness.now + timedelta(minutes=1))
    wait_until(lambda: harness.states() == [DELIVERED], "it is delivered")
    letters = harness.receiver.at("/andon")
    assert len(letters) == 4
    wait_until(lambda: (sender.failed, sender.delivered) == (3, 1), "every attempt is counted")
    assert len({letter.headers["Alarmcast-Delivery"] for letter in letters}) == 1, "a receiver can take it once"
    assert len({letter.body for letter in letters}) == 1
    assert len({letter.headers["Alarmcast-Signature"] for letter in letters}) == 4, "signed anew, each fresh"


def test_a_receiver_that_hangs_holds_up_nobody_else(harness: Harness) -> None:
    harness.receiver.answers["/slow"] = HANG
    harness.hook("/slow")
    harness.hook("/quick")
    harness.open(*range(20))
    harness.start(seconds=60)
    wait_until(lambda: len(harness.receiver.at("/quick")) == 20, "the others are told")
    assert len(harness.receiver.at("/slow")) == 1, "one attempt at a time"


def test_many_dead_receivers_do_not_keep_all_hands_busy(harness: Harness) -> None:
    dead = f"http://127.0.0.1:{free_port()}/"
    for _ in range(12):
        harness.hook(url=dead)
    harness.hook("/quick")
    harness.open(*range(10))
    harness.start()
    wait_until(lambda: len(harness.receiver.at("/quick")) == 10, "the living one is told")
    tried = [one for one in harness.deliveries() if one.attempts]
    assert len(tried) <= 10 + 12, "a receiver that failed rests, however much waits for it"


def test_no_answer_in_time_is_a_failure_that_says_so(harness: Harness) -> None:
    harness.receiver.answers["/"] = HANG
    harness.hook()
    harness.open(139)
    sender = harness.sender(seconds=0.05)
    answer = sender.deliver(harness.outbox.due(harness.now, limit=1)[0])
    assert answer == (None, "No response within 0.05 seconds.", pytest.approx(answer.seconds))  # type: ignore[union-attr]
    assert harness.states() == [WAITING]


def test_a_receiver_that_drips_headers_is_given_up_in_time() -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as server:
        gone = Event()

        def drip() -> None:
            with suppress(OSError):
                line, _ = server.accept()
                with closing(line):
                    while not gone.wait(0.02):
                        line.sendall(b"H")

        server.settimeout(10)  # the client may give up before it has connected
        thread = Thread(target=drip)
        thread.start()
        url = f"http://127.0.0.1:{server.getsockname()[1]}/"
        answer = WebhookClient(timeout=1.5, agent="Alarmcast/test", allowed=HERE).send(url, SECRET, "key", b"{}")
        gone.set()
        thread.join()
    assert answer[:2] == (None, "No response within 1.5 seconds.")


def test_a_closed_port_is_said_in_one_sentence() -> None:
    post = WebhookClient(agent="Alarmcast/test", allowed=HERE)
    answer = post.send(f"http://127.0.0.1:{free_port()}/", SECRET, "key", b"{}")
    assert answer[:2] == (None, "The receiver could not be reached: Connection refused.")


def test_a_receiver_that_says_it_is_gone_is_told_nothing_any_more(harness: Harness) -> None:
    harness.receiver.answers["/"] = 410
    hook = harness.hook()
    harness.open(1, 2)
    harness.start()
    wait_until(lambda: harness.states() == [GIVEN_UP, GIVEN_UP], "both are given up")
    wait_until(lambda: not WebhookStore(harness.database).get(hook.id).enabled, "it is disabled")
    assert "410" in (WebhookStore(harness.database).get(hook.id).error or "")
    harness.open(3)
    assert len(harness.deliveries()) == 2
    assert len(harness.receiver.letters) == 1


def test_a_receiver_that_never_answers_is_given_up_after_a_day_with_the_reason(harness: Harness) -> None:
    harness.hook(url=f"http://127.0.0.1:{free_port()}/")
    harness.open(139)
    sender, began = harness.sender(), harness.now
    for _ in range(60):
        due = harness.outbox.due(harness.now, limit=1)
        if not due:
            break
        sender.deliver(due[0])
        harness.now = harness.deliveries()[0].next_try or harness.now
    assert began + 20 * HOUR < harness.now <= began + 24 * HOUR
    [sent] = harness.deliveries()
    assert sent.state is GIVEN_UP
    assert "could not be reached" in (sent.answer or "")


def test_redirects_are_not_followed(harness: Harness) -> None:
    harness.receiver.answers["/"] = 307
    harness.receiver.headers["Location"] = harness.receiver.url("/elsewhere")
    harness.hook()
    harness.open(139)
    answer = harness.sender().deliver(harness.outbox.due(harness.now, limit=1)[0])
    assert answer
    assert (answer.status, answer.ok) == (307, False)
    assert harness.receiver.at("/elsewhere") == []


def test_nothing_of_what_a_receiver_writes_is_kept(harness: Harness) -> None:
    harness.receiver.answers["/"], harness.receiver.text = 400, b"internal secret body"
    harness.hook()
    harness.open(139)
    answer = harness.sender().deliver(harness.outbox.due(harness.now, limit=1)[0])
    assert answer
    assert (answer.status, answer.text) == (400, "Bad Request")
    assert [one.answer for one in harness.deliveries()] == ["Bad Request"]


@pytest.mark.parametrize(
    "host", ["localhost", "127.0.0.1", "2130706433", "0x7f000001", "127.1", "[::ffff:127.0.0.1]"]
)
def test_an_address_is_judged_when_it_is_connected_to_however_it_is_written(harness: Harness, host: str) -> None:
    port = httpx.URL(harness.receiver.url()).port
    url = f"http://{host}:{port}/x"
    refused = WebhookClient(agent="Alarmcast/test", allowed=AllowedAddresses()).send(url, SECRET, "key", b"{}")
    assert refused.status is None
    assert "ALARMCAST_WEBHOOK_NETWORKS" in refused.text
    assert harness.receiver.letters == []
    assert WebhookClient(agent="Alarmcast/test", allowed=HERE).send(url, SECRET, "key", b"{}").ok
    [letter] = harness.receiver.letters
    assert letter.headers["Host"] == f"{host}:{port}"


def test_a_receivers_certificate_is_checked_against_its_name(harness: Harness, tmp_path: Path) -> None:
    authority = Authority(tmp_path / "tls", datetime.now(UTC))
    pair = authority.create(hosts=["localhost"], clients=[])[0]
    harness.receiver.speak_tls(pair.certificate, pair.key)
    trusted = ssl.create_default_context(cafile=authority.files.certificate)
    post = WebhookClient(agent="Alarmcast/test", allowed=HERE, tls=trusted)
    port = httpx.URL(harness.receiver.url()).port
    assert post.send(f"https://localhost:{port}/", SECRET, "key", b"{}").ok
    wrong = post.send(f"https://127.0.0.1:{port}/", SECRET, "key", b"{}")
    assert wrong.status is None
    assert "certificate" in wrong.text


def test_what_was_opened_before_a_restart_is_delivered_after_it(harness: Harness) -> None:
    harness.hook()
    harness.open(1, 2, 3)
    harness.database.close()
    harness.database = Database(f"sqlite:///{harness.file}")
    harness.start()
    wait_until(lambda: harness.states() == [DELIVERED] * 3, "all are delivered")


def test_an_attempt_that_was_cut_off_is_made_again(harness: Harness) -> None:
    harness.hook()
    harness.open(139)
    due = harness.outbox.due(harness.now, limit=1)[0]
    assert harness.outbox.claim(due, now=harness.now, lease=timedelta(minutes=1)), "and then the power went"
    harness.start()
    harness.now += timedelta(minutes=1)
    wait_until(lambda: harness.states() == [DELIVERED], "it is delivered")
    [sent] = harness.deliveries()
    assert (sent.attempts, sent.key) == (2, due.key)


def test_trouble_with_the_database_is_told_and_goes_away_with_its_cause(harness: Harness) -> None:
    harness.hook()
    with harness.database.write() as connection:
        connection.exec_driver_sql("ALTER TABLE deliveries RENAME TO elsewhere")
    sender = harness.start()
    wait_until(lambda: sender.last_error, "it complains")
    with harness.database.write() as connection:
        connection.exec_driver_sql("ALTER TABLE elsewhere RENAME TO deliveries")
    harness.open(139)
    wait_until(lambda: sender.delivered == 1 and sender.last_error is None, "it has recovered")
