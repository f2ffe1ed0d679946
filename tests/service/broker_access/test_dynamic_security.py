"""Who may come in at the broker and what they may do there: believed only after a real Mosquitto has shown it."""

import json
import shutil

import pytest

from service.broker_access.dynamic_security import DynamicSecurityClient
from service.broker_access.models import BrokerAuthState, acls_for
from service.broker_access.mosquitto_setup import SERVICE
from service.errors import Unavailable
from service.messaging.embedded_broker import EmbeddedBroker
from tests.conftest import Mosquitto, free_port, require, wait_until
from tests.support.secured_broker import GuardedMosquitto, trying
from wire.identity import MachineId
from wire.mqtt import BrokerConfig, MqttVersion
from wire.topics import Channel, agent_name, topic

FILLER, CAPPER = MachineId("padova", "filler-1"), MachineId("padova", "capper-2")
NAME = agent_name(FILLER)
NO = "Not authorized"


def test_a_machine_may_do_on_its_own_topics_what_the_contract_says(guarded: GuardedMosquitto) -> None:
    guarded.security.grant(FILLER, generation=1, password="secret")  # noqa: S106
    with trying(guarded, NAME, "secret") as agent:
        assert agent.is_in
        for channel in (Channel.ACKS, Channel.FORECAST, Channel.STATE):
            assert agent.subscribe(topic(FILLER, channel)) == "Granted QoS 1"
        assert agent.publish(topic(FILLER, Channel.EVENTS)) in ("Success", "No matching subscribers")
        assert agent.publish(topic(FILLER, Channel.STATE)) == "Success"
        wait_until(lambda: agent.heard == [topic(FILLER, Channel.STATE)], "it hears its own state")


@pytest.mark.parametrize(
    "forbidden",
    [
        topic(FILLER, Channel.ACKS),
        topic(FILLER, Channel.FORECAST),
        *(topic(CAPPER, channel) for channel in Channel),
        "alarmcast/v1/lyon/filler-1/events",
        "alarmcast/v1/padova/filler-1/events/more",
        "$CONTROL/dynamic-security/v1",
        "$SYS/broker/uptime",
        "anything/else",
    ],
)
def test_a_machine_may_say_nothing_anywhere_else(guarded: GuardedMosquitto, forbidden: str) -> None:
    guarded.security.grant(FILLER, generation=1, password="secret")  # noqa: S106
    guarded.security.grant(CAPPER, generation=1, password="other")  # noqa: S106
    with trying(guarded, NAME, "secret") as agent:
        command = json.dumps({"commands": [{"command": "deleteClient", "username": agent_name(CAPPER)}]}).encode()
        assert agent.publish(forbidden, command) == NO
    assert agent_name(CAPPER) in guarded.security.snapshot().clients


@pytest.mark.parametrize(
    "forbidden",
    [
        topic(FILLER, Channel.EVENTS),
        *(topic(CAPPER, channel) for channel in Channel),
        "alarmcast/v1/padova/+/acks",
        "alarmcast/v1/padova/filler-1/+",
        "alarmcast/#",
        "#",
        "+/v1/padova/filler-1/acks",
        "$share/mine/alarmcast/v1/padova/capper-2/events",
        "$SYS/#",
        "$SYS/broker/uptime",
        "$CONTROL/#",
        "$CONTROL/dynamic-security/v1/response",
    ],
)
def test_a_machine_may_listen_nowhere_else(guarded: GuardedMosquitto, forbidden: str) -> None:
    guarded.security.grant(FILLER, generation=1, password="secret")  # noqa: S106
    with trying(guarded, NAME, "secret") as agent:
        assert agent.subscribe(forbidden) == NO


@pytest.mark.parametrize(
    ("username", "password", "client_id"),
    [
        (NAME, "wrong", NAME),
        (NAME, "secret", agent_name(CAPPER)),
        (NAME, "secret", "anything"),
        (NAME, "secret", ""),
        (agent_name(CAPPER), "secret", agent_name(CAPPER)),
        (agent_name(CAPPER), "other", NAME),
        (SERVICE, "secret", "service"),
        ("", "", "nobody"),
    ],
)
def test_nobody_comes_in_with_another_name_password_or_client_id(
    guarded: GuardedMosquitto, username: str, password: str, client_id: str
) -> None:
    guarded.security.grant(FILLER, generation=1, password="secret")  # noqa: S106
    guarded.security.grant(CAPPER, generation=1, password="other")  # noqa: S106
    with trying(guarded, username, password, client_id) as stranger:
        assert str(stranger.answer) == NO


def test_what_is_repeated_changes_nothing(guarded: GuardedMosquitto) -> None:
    for _ in range(2):
        guarded.security.grant(FILLER, generation=1, password="secret")  # noqa: S106
    found = guarded.security.snapshot()
    (holder,) = found.clients.values()
    assert (holder.client_id, holder.generation, holder.enabled, holder.roles) == (NAME, 1, True, (NAME,))
    assert found.roles == {NAME: acls_for(FILLER)}
    for _ in range(2):
        guarded.security.remove([NAME])
    found = guarded.security.snapshot()
    assert (dict(found.clients), dict(found.roles)) == ({}, {})


def test_a_new_password_throws_out_who_came_in_with_the_old_one(guarded: GuardedMosquitto) -> None:
    guarded.security.grant(FILLER, generation=1, password="old")  # noqa: S106
    with trying(guarded, NAME, "old") as agent:
        guarded.security.grant(FILLER, generation=2, password="new")  # noqa: S106
        assert agent.gone.wait(10)
    with trying(guarded, NAME, "old") as agent:
        assert not agent.is_in
    with trying(guarded, NAME, "new") as agent:
        assert agent.is_in


def test_who_is_held_exists_and_is_kept_out_until_let_in(guarded: GuardedMosquitto) -> None:
    guarded.security.create_disabled(FILLER)
    (holder,) = guarded.security.snapshot().clients.values()
    assert (holder.enabled, holder.generation, holder.roles) == (False, None, (NAME,))
    with trying(guarded, NAME, "") as agent:
        assert not agent.is_in
    guarded.security.grant(FILLER, generation=2, password="new")  # noqa: S106
    with trying(guarded, NAME, "new") as agent:
        assert agent.is_in
    guarded.security.create_disabled(FILLER)
    with trying(guarded, NAME, "new") as agent:
        assert agent.is_in, "who is there already is left alone"
        guarded.security.disable(FILLER)
        assert agent.gone.wait(10)


def test_only_what_is_ours_is_ever_touched(guarded: GuardedMosquitto) -> None:
    before = guarded.remembered()
    guarded.security.remove(["admin", SERVICE, "somebody"])
    assert guarded.remembered() == before


def test_a_role_that_was_bent_is_straightened(guarded: GuardedMosquitto) -> None:
    require(shutil.which("mosquitto_ctrl"), "mosquitto_ctrl")
    guarded.security.grant(FILLER, generation=1, password="secret")  # noqa: S106
    guarded.ctl("addRoleACL", NAME, "subscribePattern", "#", "allow")
    guarded.ctl("setClientId", NAME, "another")
    assert guarded.security.snapshot().roles[NAME] > acls_for(FILLER)
    guarded.security.repair_roles(FILLER)
    found = guarded.security.snapshot()
    assert found.roles[NAME] == acls_for(FILLER)
    assert found.clients[NAME].client_id == NAME
    with trying(guarded, NAME, "secret") as agent:
        assert agent.subscribe("#") == NO


def test_many_machines_come_and_go_and_the_broker_lives(guarded: GuardedMosquitto) -> None:
    many = [MachineId("plant", f"m{number}") for number in range(120)]
    for machine in many:
        guarded.security.create_disabled(machine)
    assert len(guarded.security.snapshot().clients) == len(guarded.security.snapshot().roles) == 120
    guarded.security.remove([agent_name(machine) for machine in many])
    assert guarded.security.snapshot().clients == {}
    assert guarded.process
    assert guarded.process.poll() is None


def test_what_broker_init_writes_is_read_by_mosquittos_own_tool(guarded: GuardedMosquitto) -> None:
    require(shutil.which("mosquitto_ctrl"), "mosquitto_ctrl")
    assert guarded.ctl("listClients").split() == ["admin", SERVICE]
    told = guarded.ctl("getDefaultACLAccess")
    assert [line.split()[-1] for line in told.splitlines()] == ["deny", "deny", "deny", "allow"]


def test_a_guarded_broker_is_told_from_one_that_is_not(guarded: GuardedMosquitto, mosquitto: Mosquitto) -> None:
    assert guarded.security.probe() == (BrokerAuthState.ON, None)
    open_one = BrokerConfig("127.0.0.1", mosquitto.port)
    guard, why_not = DynamicSecurityClient(open_one, client_id="test", answer_timeout_s=60).probe()
    assert (guard, why_not) == (
        BrokerAuthState.OFF,
        "the broker has no dynamic-security plugin, or keeps it from us",
    )


def test_the_embedded_broker_is_not_guarded() -> None:
    broker = EmbeddedBroker(port := free_port())
    broker.start()
    address = BrokerConfig("127.0.0.1", port, MqttVersion.V311)
    assert DynamicSecurityClient(address, client_id="test", answer_timeout_s=60).probe()[0] is BrokerAuthState.OFF
    broker.stop()


def test_without_the_right_to_manage_it_the_broker_is_not_ours_to_guard(guarded: GuardedMosquitto) -> None:
    guarded.security.grant(FILLER, generation=1, password="secret")  # noqa: S106
    address = BrokerConfig("127.0.0.1", guarded.port, username=NAME, password="secret")  # noqa: S106
    talk = DynamicSecurityClient(address, client_id="x")
    with pytest.raises(Unavailable, match="refuses the connection"):  # another client id than the machine's
        talk.probe()


def test_a_broker_that_is_away_is_unavailable(guarded: GuardedMosquitto) -> None:
    guarded.kill()
    with pytest.raises(Unavailable, match="Cannot reach the broker"):
        guarded.security.snapshot()
    with pytest.raises(Unavailable):
        guarded.security.grant(FILLER, generation=1, password="secret")  # noqa: S106


def test_what_was_issued_outlives_a_broker_that_is_killed(guarded: GuardedMosquitto) -> None:
    guarded.security.grant(FILLER, generation=1, password="secret")  # noqa: S106
    guarded.kill()
    guarded.start()
    with trying(guarded, NAME, "secret") as agent:
        assert agent.is_in
