"""Client of Mosquitto's dynamic-security plugin: JSON commands on the ``$CONTROL`` topic.

Every session has a connection of its own, so that it works whether or not the service runs, and late responses of
an earlier session cannot be mistaken for its own. Commands are idempotent: a session that broke off is repeated.

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
_RESPONSES = f"{TOPIC}/response"
_UNUSED_TOPIC = f"{TOPIC}/unused"  # without subscribers: a message to it is only acked
_PAGE_SIZE = 100  # clients or roles per response
_RESPONSE_DELAY_S = 0.2  # after the ack of a command, if there is a plugin
_ALREADY_DONE = ("already exists", "not found", "already in this role")
_GENERATION, _SET_ASIDE = "generation ", ", disabled: no database knew it"
_INSTALLATION = "alarmcast-installation"  # a role

Command = dict[str, Any]


class NoDynamicSecurity(Exception):
    """The broker has no dynamic security, or does not accept our commands; a slow one is :class:`Unavailable`."""


class DynamicSecurityClient:
    """Creates, changes and lists the agents' clients and roles."""

    def __init__(
        self,
        address: BrokerConfig,
        *,
        client_id: str,
        connect_timeout_s: float = 5.0,
        answer_timeout_s: float = 5.0,
    ) -> None:
        self._address, self._client_id = address, client_id
        self._connect_timeout_s, self._answer_timeout_s = connect_timeout_s, answer_timeout_s

    def probe(self) -> tuple[BrokerAuthState, str | None]:
        """Return whether dynamic security is on, and why not; :class:`Unavailable` without a connection."""
        try:
            with self._connect() as session:
                session.ask([{"command": "getDefaultACLAccess"}])
        except NoDynamicSecurity as error:
            return BrokerAuthState.OFF, str(error)
        return BrokerAuthState.ON, None

    def snapshot(self) -> BrokerAclSnapshot:
        """Return the agents' clients and roles."""
        with self._session() as session:
            clients = session.listed("listClients", "clients")
            roles = session.listed("listRoles", "roles")
        managed = (_broker_client(client) for client in clients if is_managed(client["username"]))
        return BrokerAclSnapshot(
            {client.name: client for client in managed},
            {role["rolename"]: _role_acls(role) for role in roles if is_managed(role["rolename"])},
            next((role.get("textdescription") for role in roles if role["rolename"] == _INSTALLATION), None),
        )

    def installation(self) -> str | None:
        """Return the id of the installation that has claimed the broker, if any."""
        with self._session() as session:
            (answer,) = session.ask([{"command": "getRole", "rolename": _INSTALLATION}])
        role = answer.get("data", {}).get("role", {})
        identity: str | None = role.get("textdescription")
        return identity

    def claim(self, identity: str) -> None:
        """Write an installation's id into the broker, as the description of an unused role."""
        named = {"textname": "Installation that manages these agents", "textdescription": identity}
        with self._session() as session:
            session.ask(
                [
                    {"command": "createRole", "rolename": _INSTALLATION},
                    {"command": "modifyRole", "rolename": _INSTALLATION} | named,
                ]
            )

    def set_aside(self, names: Iterable[str]) -> None:
        """Disable and mark clients that are not in the database; they keep their password."""
        managed = [name for name in names if is_managed(name)]
        with self._session() as session:
            clients = {client["username"]: client for client in session.listed("listClients", "clients")}
            for name in managed:
                description = str(clients.get(name, {}).get("textdescription", "")).removesuffix(_SET_ASIDE)
                session.ask(
                    [
                        {
                            "command": "modifyClient",
                            "username": name,
                            "textdescription": f"{description}{_SET_ASIDE}",
                        },
                        {"command": "disableClient", "username": name},
                    ]
                )

    def enable(self, machine: MachineId, *, generation: int) -> None:
        """Enable a client that was set aside; it keeps its password."""
        name = agent_name(machine)
        with self._session() as session:
            session.ask(
                [
                    {"command": "modifyClient", "username": name, "textdescription": f"{_GENERATION}{generation}"},
                    {"command": "enableClient", "username": name},
                ]
            )

    def grant(
        self, machine: MachineId, *, generation: int, password: str, last_state: tuple[str, bytes] | None = None
    ) -> None:
        """Create or change a machine's client with a new password; a connection with the old one is closed.

        ``last_state`` replaces the last will: Mosquitto publishes none for connections that it closes.
        """
        name = agent_name(machine)
        with self._session() as session:
            # The generation after the password: interrupted in between, the machine is refused, and never accepted
            # with an old password that counts as the new one.
            session.ask(
                [
                    *_role(machine),
                    {"command": "createClient", "username": name, "clientid": name},
                    {"command": "setClientPassword", "username": name, "password": password},
                    _client_role(name) | {"textdescription": f"{_GENERATION}{generation}"},
                    {"command": "enableClient", "username": name},
                ]
            )
            if last_state:
                session.retain(*last_state)

    def create_disabled(self, machine: MachineId) -> None:
        """Create a machine's client and role, disabled and without a password."""
        name = agent_name(machine)
        with self._session() as session:
            session.ask(_role(machine))
            (created,) = session.ask([_client_role(name) | {"command": "createClient"}])
            if "error" not in created:  # else another process has just granted access
                session.ask([{"command": "disableClient", "username": name}])

    def disable(self, machine: MachineId) -> None:
        """Disable a machine's client and close its connection."""
        with self._session() as session:
            session.ask([{"command": "disableClient", "username": agent_name(machine)}])

    def repair_roles(self, machine: MachineId) -> None:
        """Restore a machine's ACLs, role and client id; it has to connect again."""
        name = agent_name(machine)
        with self._session() as session:
            session.ask([*_role(machine), _client_role(name)])

    def remove(self, names: Iterable[str], *, last_state: tuple[str, bytes] | None = None) -> None:
        """Delete clients and their roles and close their connections."""
        managed = [name for name in names if is_managed(name)]
        with self._session() as session:
            for name in managed:
                session.ask(
                    [
                        {"command": "disableClient", "username": name},
                        {"command": "deleteClient", "username": name},
                        {"command": "deleteRole", "rolename": name},
                    ]
                )
            if last_state:
                session.retain(*last_state)

    @contextmanager
    def _session(self) -> Iterator["ControlSession"]:
        try:
            with self._connect() as session:
                yield session
        except NoDynamicSecurity as error:
            raise Unavailable(f"Credentials cannot be changed now: {error}.") from None

    @contextmanager
    def _connect(self) -> Iterator["ControlSession"]:
        client_id = f"{self._client_id}/control-{secrets.token_hex(4)}"
        session = ControlSession(self._address, client_id=client_id, answer_timeout_s=self._answer_timeout_s)
        session.open(self._connect_timeout_s)
        try:
            yield session
        finally:
            session.close()


class ControlSession:
    """One connection to the control topic; one request at a time."""

    def __init__(self, address: BrokerConfig, *, client_id: str, answer_timeout_s: float) -> None:
        self._address, self._seconds = address, answer_timeout_s
        self._client = create_client(address, client_id, reconnect_on_failure=False)
        self._client.on_connect = self._on_connect
        self._client.on_subscribe = self._on_subscribe
        self._client.on_publish = self._on_publish
        self._client.on_message = self._on_message
        self._client.on_disconnect = self._on_disconnect
        self._user = address.username or "anonymous clients"
        self._changed, self._over = Event(), False
        self._ready = False
        self._error: str | None = None
        self._refused: str | None = None
        self._answers: list[dict[str, Any]] = []
        self._received: set[int] = set()  # acked message ids

    def open(self, seconds: float) -> None:
        """Connect and subscribe; raise :class:`Unavailable`, or :class:`NoDynamicSecurity` if not permitted."""
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
                raise NoDynamicSecurity(self._refused)
            error_text = tls_hint(self._address) or self._error or "it does not answer"
            raise Unavailable(f"Cannot talk to {where}: {error_text}.")

    def close(self) -> None:
        self._client.disconnect()
        self._client.loop_stop()

    def ask(self, commands: list[Command]) -> list[dict[str, Any]]:
        """Send commands and return their responses; raise on errors other than "already done"."""
        token = secrets.token_hex(8)
        marked = [command | {"correlationData": token} for command in commands]
        self._answers.clear()
        asked = self._publish(TOPIC, json.dumps({"commands": marked}).encode())
        self._await_answer(asked, lambda: self._answered(token, len(commands)) or self._refused)
        answers = self._answers_to(token)
        if len(answers) < len(commands):
            raise NoDynamicSecurity(
                self._refused or "the broker has no dynamic-security plugin, or does not permit its use"
            )
        for answer in answers:
            error = str(answer.get("error", ""))
            if error and not any(text in error.lower() for text in _ALREADY_DONE):
                raise Unavailable(f"The broker refused to {answer.get('command')}: {error}.")
        return answers

    def listed(self, command: str, what: str) -> list[dict[str, Any]]:
        """Return a complete list, read page by page."""
        items: list[dict[str, Any]] = []
        while True:
            page = {"command": command, "verbose": True, "count": _PAGE_SIZE, "offset": len(items)}
            data = self.ask([page])[0].get("data", {})
            items += data.get(what, [])
            if len(items) >= data.get("totalCount", 0) or not data.get(what):
                return items

    def retain(self, topic: str, payload: bytes) -> None:
        """Publish a retained message and wait for its ack."""
        message_id = self._publish(topic, payload, retain=True)
        self._wait(lambda: message_id in self._received, self._seconds)

    def _await_answer(self, asked: int, answered: Callable[[], object]) -> None:
        """Return when there is a response, or when it is certain that there will be none.

        The plugin responds while the broker handles a command, and the broker sends in order. So if the command
        and a later message are both acked without a response, there is no plugin, or we may not use it.
        """
        self._await_receipt(asked, answered)
        self._wait(answered, _RESPONSE_DELAY_S)
        if not answered():
            self._await_receipt(self._publish(_UNUSED_TOPIC, b""), answered)

    def _publish(self, topic: str, payload: bytes, *, retain: bool = False) -> int:
        """Publish a message and return its id; above the broker's size limit it is refused, not queued."""
        if exceeds_limit(payload):
            raise Unavailable(f"Not sent to the broker: {len(payload)} bytes to {topic} are above its limit.")
        return self._client.publish(topic, payload, qos=1, retain=retain).mid

    def _await_receipt(self, sent: int, answered: Callable[[], object]) -> None:
        self._wait(lambda: answered() or sent in self._received, self._seconds)
        if not answered() and sent not in self._received:
            raise Unavailable(
                f"The broker closed the connection: {self._error}."
                if self._over
                else f"The broker has not answered within {self._seconds:g} seconds."
            )

    def _answered(self, token: str, count: int) -> bool:
        return len(self._answers_to(token)) >= count

    def _answers_to(self, token: str) -> list[dict[str, Any]]:
        return [answer for answer in self._answers if answer.get("correlationData") == token]

    def _wait(self, condition: Callable[[], object], seconds: float) -> None:
        deadline = time.monotonic() + seconds
        while not (condition() or self._over) and (left := deadline - time.monotonic()) > 0:
            self._changed.wait(left)
            self._changed.clear()

    # --- paho's callbacks, on its network thread ---------------------------------------------------------

    def _on_connect(self, client: mqtt.Client, _data: Any, _flags: Any, reason: ReasonCode, _props: Any) -> None:
        if reason.is_failure:
            self._error = f"it refuses the connection: {reason}"
            self._over = True
            self._changed.set()
            return
        client.subscribe(_RESPONSES, qos=1)

    def _on_subscribe(self, _c: mqtt.Client, _data: Any, _mid: int, reasons: list[ReasonCode], _p: Any) -> None:
        if reasons[0].is_failure:
            self._refused = f"the broker does not permit {self._user} to manage dynamic security"
            self._over = True
        else:
            self._ready = True
        self._changed.set()

    def _on_publish(self, _c: mqtt.Client, _data: Any, mid: int, reason: ReasonCode, _props: Any) -> None:
        self._received.add(mid)
        if reason.is_failure:
            self._refused = f"the broker does not permit {self._user} to send commands: {reason}"
        self._changed.set()

    def _on_message(self, _c: mqtt.Client, _data: Any, message: mqtt.MQTTMessage) -> None:
        try:
            answers = json.loads(message.payload)["responses"]
        except (ValueError, KeyError, TypeError):
            return
        self._answers += [answer for answer in answers if isinstance(answer, dict)]
        self._changed.set()

    def _on_disconnect(self, _c: mqtt.Client, _data: Any, _flags: Any, reason: ReasonCode, _props: Any) -> None:
        self._error = self._error or str(reason)
        self._over = True
        self._changed.set()


def _role(machine: MachineId) -> list[Command]:
    """Return the commands that create or restore a machine's role."""
    name, allowed = agent_name(machine), acls(acls_for(machine))
    return [
        {"command": "createRole", "rolename": name},
        {"command": "modifyRole", "rolename": name, "textname": f"Agent of {machine}", "acls": allowed},
    ]


def _client_role(name: str) -> Command:
    """Return the command that sets the client id and role of a client."""
    return {"command": "modifyClient", "username": name, "clientid": name, "roles": [{"rolename": name}]}


def acls(allowed: Iterable[Acl]) -> list[dict[str, Any]]:
    """Return ACLs in the plugin's format, in a fixed order."""
    return [{"acltype": acl.kind, "topic": acl.topic, "priority": 0, "allow": True} for acl in sorted(allowed)]


def _role_acls(role: dict[str, Any]) -> frozenset[Acl]:
    """Return a role's ACLs; a deny rule counts as an unexpected ACL, so the role never matches."""
    return frozenset(
        Acl(acl["acltype"] if acl.get("allow") else f"not {acl['acltype']}", acl["topic"])
        for acl in role.get("acls", [])
    )


def _broker_client(client: dict[str, Any]) -> BrokerClient:
    description = str(client.get("textdescription", ""))
    generation = description.removesuffix(_SET_ASIDE).removeprefix(_GENERATION)
    return BrokerClient(
        name=client["username"],
        client_id=client.get("clientid"),
        generation=int(generation) if generation.isdecimal() else None,
        enabled=not client.get("disabled", False),
        roles=tuple(role["rolename"] for role in client.get("roles", [])),
        set_aside=description.endswith(_SET_ASIDE),
    )
