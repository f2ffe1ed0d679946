"""Mosquitto's dynamic-security plugin: who may come in, and what they may do, said in JSON on ``$CONTROL``.

Every conversation has a connection of its own, so that it can be held whether or not the service is running, and
nothing that an old one left unanswered can be taken for an answer. What is there already, or gone already, is
success: a conversation that broke off is simply held again.

A client is always removed before its role: Mosquitto up to 2.0.15 crashes soon after a role is deleted that a
client still has (eclipse-mosquitto/mosquitto#2660).
"""

import json
import secrets
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from threading import Event
from typing import Any

import paho.mqtt.client as mqtt
from paho.mqtt.reasoncodes import ReasonCode

from service.broker_access.models import (
    Acl,
    BrokerAclSnapshot,
    BrokerAuthState,
    BrokerClient,
    acls_for,
    is_managed,
)
from service.errors import Unavailable
from service.messaging.broker_connection import create_client, tls_hint
from wire.codec import exceeds_limit
from wire.identity import MachineId
from wire.mqtt import BrokerConfig
from wire.topics import agent_name

TOPIC = "$CONTROL/dynamic-security/v1"
_ANSWERS = f"{TOPIC}/response"
_NOBODY = f"{TOPIC}/nobody"  # nobody listens there: a message to it only makes the broker say that it has it
_PAGE = 100  # clients or roles in an answer, so that it stays small
_AT_ONCE = 0.2  # seconds after its receipt in which a command is answered, where anybody answers
_REPEATED = ("already exists", "not found", "already in this role")
_GENERATION, _SET_ASIDE = "generation ", ", disabled: no database knew it"
_INSTALLATION = "alarmcast-installation"  # a role

Command = dict[str, Any]


class NotGuarded(Exception):
    """The broker takes no such commands, at least not from us; the message says which of the two.

    That is what a broker has shown, never what we make of its silence: one that is slow is :class:`Unavailable`.
    """


class DynamicSecurityClient:
    """Lets agents in, keeps them out, and tells whom the broker knows."""

    def __init__(
        self, address: BrokerConfig, *, client_id: str, connect_seconds: float = 5.0, answer_seconds: float = 5.0
    ) -> None:
        self._address, self._client_id = address, client_id
        self._connect_seconds, self._answer_seconds = connect_seconds, answer_seconds

    def probe(self) -> tuple[BrokerAuthState, str | None]:
        """Ask the broker whether it is guarded, and why it is not if so; :class:`Unavailable` if it is away."""
        try:
            with self._conversation() as talk:
                talk.ask([{"command": "getDefaultACLAccess"}])
        except NotGuarded as error:
            return BrokerAuthState.OFF, str(error)
        return BrokerAuthState.ON, None

    def snapshot(self) -> BrokerAclSnapshot:
        """Return the clients and roles that are ours."""
        with self._guarded() as talk:
            clients = talk.listed("listClients", "clients")
            roles = talk.listed("listRoles", "roles")
        holders = (_holder(one) for one in clients if is_managed(one["username"]))
        return BrokerAclSnapshot(
            {one.name: one for one in holders},
            {one["rolename"]: _rights(one) for one in roles if is_managed(one["rolename"])},
            next((one.get("textdescription") for one in roles if one["rolename"] == _INSTALLATION), None),
        )

    def installation(self) -> str | None:
        """Return the identity of the installation that has claimed the broker, if one has."""
        with self._guarded() as talk:
            (answer,) = talk.ask([{"command": "getRole", "rolename": _INSTALLATION}])
        role = answer.get("data", {}).get("role", {})
        identity: str | None = role.get("textdescription")
        return identity

    def claim(self, identity: str) -> None:
        """Write an installation's identity into the broker, whoever had claimed it before.

        It is the description of a role that allows nothing and that nobody has.
        """
        named = {"textname": "Installation that manages these agents", "textdescription": identity}
        with self._guarded() as talk:
            talk.ask(
                [
                    {"command": "createRole", "rolename": _INSTALLATION},
                    {"command": "modifyRole", "rolename": _INSTALLATION} | named,
                ]
            )

    def set_aside(self, names: Iterable[str]) -> None:
        """Disable clients that no database knows; they keep their password, and a mark that says why."""
        ours = [name for name in names if is_managed(name)]
        with self._guarded() as talk:
            found = {one["username"]: one for one in talk.listed("listClients", "clients")}
            for name in ours:
                told = str(found.get(name, {}).get("textdescription", "")).removesuffix(_SET_ASIDE)
                talk.ask(
                    [
                        {"command": "modifyClient", "username": name, "textdescription": f"{told}{_SET_ASIDE}"},
                        {"command": "disableClient", "username": name},
                    ]
                )

    def let_back(self, machine: MachineId, *, generation: int) -> None:
        """Enable a client that was set aside, with the password it has."""
        name = agent_name(machine)
        with self._guarded() as talk:
            talk.ask(
                [
                    {"command": "modifyClient", "username": name, "textdescription": f"{_GENERATION}{generation}"},
                    {"command": "enableClient", "username": name},
                ]
            )

    def grant(
        self, machine: MachineId, *, generation: int, password: str, farewell: tuple[str, bytes] | None = None
    ) -> None:
        """Let a machine in with a new password; whoever is there with an old one is thrown out.

        ``farewell`` is retained in the place of a last will: Mosquitto publishes none for whom it throws out.
        """
        name = agent_name(machine)
        with self._guarded() as talk:
            # The generation after the password: cut off in between, the machine is kept out, never let in by an
            # old password that is taken for the new one.
            talk.ask(
                [
                    *_role(machine),
                    {"command": "createClient", "username": name, "clientid": name},
                    {"command": "setClientPassword", "username": name, "password": password},
                    _bound(name) | {"textdescription": f"{_GENERATION}{generation}"},
                    {"command": "enableClient", "username": name},
                ]
            )
            if farewell:
                talk.retain(*farewell)

    def create_disabled(self, machine: MachineId) -> None:
        """Make a machine's client and role, without a password and kept out."""
        name = agent_name(machine)
        with self._guarded() as talk:
            talk.ask(_role(machine))
            (made,) = talk.ask([_bound(name) | {"command": "createClient"}])
            if "error" not in made:  # or somebody else has just let it in
                talk.ask([{"command": "disableClient", "username": name}])

    def disable(self, machine: MachineId) -> None:
        """Throw a machine out and let it in no more; it keeps its name."""
        with self._guarded() as talk:
            talk.ask([{"command": "disableClient", "username": agent_name(machine)}])

    def repair_roles(self, machine: MachineId) -> None:
        """Give a machine the rights, the role and the client id that are its own; it has to connect again."""
        name = agent_name(machine)
        with self._guarded() as talk:
            talk.ask([*_role(machine), _bound(name)])

    def remove(self, names: Iterable[str], *, farewell: tuple[str, bytes] | None = None) -> None:
        """Throw out and forget whoever has one of these names, with the role of that name."""
        ours = [name for name in names if is_managed(name)]
        with self._guarded() as talk:
            for name in ours:
                talk.ask(
                    [
                        {"command": "disableClient", "username": name},
                        {"command": "deleteClient", "username": name},
                        {"command": "deleteRole", "rolename": name},
                    ]
                )
            if farewell:
                talk.retain(*farewell)

    @contextmanager
    def _guarded(self) -> Iterator["ControlSession"]:
        try:
            with self._conversation() as talk:
                yield talk
        except NotGuarded as error:
            raise Unavailable(f"Credentials cannot be changed now: {error}.") from None

    @contextmanager
    def _conversation(self) -> Iterator["ControlSession"]:
        client_id = f"{self._client_id}/control-{secrets.token_hex(4)}"
        talk = ControlSession(self._address, client_id=client_id, answer_seconds=self._answer_seconds)
        talk.open(self._connect_seconds)
        try:
            yield talk
        finally:
            talk.close()


class ControlSession:
    """One connection, one question at a time."""

    def __init__(self, address: BrokerConfig, *, client_id: str, answer_seconds: float) -> None:
        self._address, self._seconds = address, answer_seconds
        self._client = create_client(address, client_id, reconnect_on_failure=False)
        self._client.on_connect = self._on_connect
        self._client.on_subscribe = self._on_subscribe
        self._client.on_publish = self._on_publish
        self._client.on_message = self._on_message
        self._client.on_disconnect = self._on_disconnect
        self._changed, self._over = Event(), False
        self._ready = False
        self._trouble: str | None = None
        self._refused: str | None = None
        self._answers: list[dict[str, Any]] = []
        self._received: set[int] = set()  # what the broker has said to have

    def open(self, seconds: float) -> None:
        """Connect and listen, or raise :class:`Unavailable`, or :class:`NotGuarded` if we may not."""
        where = f"the broker at {self._address.host}:{self._address.port}"
        try:
            self._client.connect(self._address.host, self._address.port, keepalive=15)
        except (OSError, ValueError) as error:
            raise Unavailable(f"Cannot reach {where}: {error}.") from None
        self._client.loop_start()
        self._wait(lambda: self._ready, seconds)
        if not self._ready:
            self.close()
            if self._refused:
                raise NotGuarded(self._refused)
            trouble = tls_hint(self._address) or self._trouble or "it does not answer"
            raise Unavailable(f"Cannot talk to {where}: {trouble}.")

    def close(self) -> None:
        """Hang up."""
        self._client.disconnect()
        self._client.loop_stop()

    def ask(self, commands: list[Command]) -> list[dict[str, Any]]:
        """Send commands and return their answers; what was done before is done, anything else is raised."""
        token = secrets.token_hex(8)
        marked = [command | {"correlationData": token} for command in commands]
        self._answers.clear()
        asked = self._publish(TOPIC, json.dumps({"commands": marked}).encode())
        self._await_answer(asked, lambda: self._answered(token, len(commands)) or self._refused)
        answers = [one for one in self._answers if one.get("correlationData") == token]
        if len(answers) < len(commands):
            raise NotGuarded(self._refused or "the broker has no dynamic-security plugin, or keeps it from us")
        for answer in answers:
            error = str(answer.get("error", ""))
            if error and not any(words in error.lower() for words in _REPEATED):
                raise Unavailable(f"The broker refused to {answer.get('command')}: {error}.")
        return answers

    def listed(self, command: str, what: str) -> list[dict[str, Any]]:
        """Return all of a list, page by page."""
        found: list[dict[str, Any]] = []
        while True:
            page = {"command": command, "verbose": True, "count": _PAGE, "offset": len(found)}
            data = self.ask([page])[0].get("data", {})
            found += data.get(what, [])
            if len(found) >= data.get("totalCount", 0) or not data.get(what):
                return found

    def retain(self, topic: str, payload: bytes) -> None:
        """Let the broker keep a message, and wait until it has it."""
        told = self._publish(topic, payload, retain=True)
        self._wait(lambda: told in self._received, self._seconds)

    def _await_answer(self, asked: int, answered: Callable[[], object]) -> None:
        """Return when there is an answer, or when there will be none because nobody is there to give it.

        The plugin answers while the broker takes a command in, and the broker sends in order. So if it has said
        to have the command, and then to have what was sent after that, there is no plugin, or not for us.
        """
        self._await_receipt(asked, answered)
        self._wait(answered, _AT_ONCE)
        if not answered():
            self._await_receipt(self._publish(_NOBODY, b""), answered)

    def _publish(self, topic: str, payload: bytes, *, retain: bool = False) -> int:
        """Send a message and return its id; what is above the broker's limit is refused, not queued."""
        if exceeds_limit(payload):
            raise Unavailable(f"Not sent to the broker: {len(payload)} bytes to {topic} are above its limit.")
        return self._client.publish(topic, payload, qos=1, retain=retain).mid

    def _await_receipt(self, sent: int, answered: Callable[[], object]) -> None:
        self._wait(lambda: answered() or sent in self._received, self._seconds)
        if not answered() and sent not in self._received:
            raise Unavailable(
                f"The broker hung up: {self._trouble}."
                if self._over
                else f"The broker has not answered within {self._seconds:g} seconds."
            )

    def _answered(self, token: str, count: int) -> bool:
        return len([one for one in self._answers if one.get("correlationData") == token]) >= count

    def _wait(self, condition: Callable[[], object], seconds: float) -> None:
        deadline = time.monotonic() + seconds
        while not (condition() or self._over) and (left := deadline - time.monotonic()) > 0:
            self._changed.wait(left)
            self._changed.clear()

    # --- paho's callbacks, on its network thread ---------------------------------------------------------

    def _on_connect(self, client: mqtt.Client, _data: Any, _flags: Any, reason: ReasonCode, _props: Any) -> None:
        if reason.is_failure:
            self._trouble = f"it refuses us: {reason}"
            self._over = True
            self._changed.set()
            return
        client.subscribe(_ANSWERS, qos=1)

    def _on_subscribe(self, _c: mqtt.Client, _data: Any, _mid: int, reasons: list[ReasonCode], _p: Any) -> None:
        if reasons[0].is_failure:
            self._refused = f"the broker does not let {self._address.username or 'anybody'} manage who may come in"
            self._over = True
        else:
            self._ready = True
        self._changed.set()

    def _on_publish(self, _c: mqtt.Client, _data: Any, mid: int, reason: ReasonCode, _props: Any) -> None:
        self._received.add(mid)
        if reason.is_failure:
            self._refused = f"the broker does not let {self._address.username or 'anybody'} say that: {reason}"
        self._changed.set()

    def _on_message(self, _c: mqtt.Client, _data: Any, message: mqtt.MQTTMessage) -> None:
        try:
            answers = json.loads(message.payload)["responses"]
        except (ValueError, KeyError, TypeError):
            return
        self._answers += [one for one in answers if isinstance(one, dict)]
        self._changed.set()

    def _on_disconnect(self, _c: mqtt.Client, _data: Any, _flags: Any, reason: ReasonCode, _props: Any) -> None:
        self._trouble = self._trouble or str(reason)
        self._over = True
        self._changed.set()


def _role(machine: MachineId) -> list[Command]:
    """Make the machine's role, or make it what it should be."""
    name, allowed = agent_name(machine), acls(acls_for(machine))
    return [
        {"command": "createRole", "rolename": name},
        {"command": "modifyRole", "rolename": name, "textname": f"Agent of {machine}", "acls": allowed},
    ]


def _bound(name: str) -> Command:
    """Bind a client to its client id and to its role."""
    return {"command": "modifyClient", "username": name, "clientid": name, "roles": [{"rolename": name}]}


def acls(allowed: Iterable[Acl]) -> list[dict[str, Any]]:
    """Write rights as the plugin reads them, in a fixed order."""
    return [{"acltype": one.kind, "topic": one.topic, "priority": 0, "allow": True} for one in sorted(allowed)]


def _rights(role: dict[str, Any]) -> frozenset[Acl]:
    """Read a role; what it forbids is a right that nobody should have, so it never looks as it should."""
    return frozenset(
        Acl(acl["acltype"] if acl.get("allow") else f"not {acl['acltype']}", acl["topic"])
        for acl in role.get("acls", [])
    )


def _holder(client: dict[str, Any]) -> BrokerClient:
    description = str(client.get("textdescription", ""))
    told = description.removesuffix(_SET_ASIDE).removeprefix(_GENERATION)
    return BrokerClient(
        name=client["username"],
        client_id=client.get("clientid"),
        generation=int(told) if told.isdecimal() else None,
        enabled=not client.get("disabled", False),
        roles=tuple(role["rolename"] for role in client.get("roles", [])),
        set_aside=description.endswith(_SET_ASIDE),
    )
