"""A real OPC UA server that a test may stop and start again on the same port."""

import asyncio
from collections.abc import Coroutine
from pathlib import Path
from threading import Thread
from typing import Any

from asyncua import Server, ua
from asyncua.common.structures104 import new_struct, new_struct_field
from asyncua.crypto.cert_gen import setup_self_signed_certificate
from asyncua.crypto.permission_rules import User, UserRole
from cryptography.x509.oid import ExtendedKeyUsageOID

from tests.conftest import free_port

_POLICIES = [
    ua.SecurityPolicyType.NoSecurity,
    ua.SecurityPolicyType.Basic256Sha256_SignAndEncrypt,
    ua.SecurityPolicyType.Aes128Sha256RsaOaep_SignAndEncrypt,
    ua.SecurityPolicyType.Aes256Sha256RsaPss_SignAndEncrypt,
]


class _Users:
    """Anonymous users and one with a password; with ``certificates`` only users who have one of them."""

    def __init__(self, password: str) -> None:
        self._password = password
        self.certificates: set[bytes] = set()

    def get_user(
        self, _server: Any, username: str | None = None, password: str | None = None, certificate: Any = None
    ) -> User | None:
        if self.certificates and certificate not in self.certificates:
            return None
        known = (username, password) in ((None, None), ("agent", self._password))
        return User(role=UserRole.User, name=username) if known else None


_TYPES = {
    "word": ua.VariantType.UInt16,
    "code": ua.VariantType.UInt32,
    "flag": ua.VariantType.Boolean,
    "text": ua.VariantType.String,
}


class OpcuaServer:
    """Tags ``word``, ``code``, ``flag`` and ``text`` in namespace 2, PackML arrays, and conditions."""

    def __init__(self, folder: Path, port: int | None = None, password: str = "secret") -> None:  # noqa: S107
        self.port, self._password = port or free_port(), password
        self.url = f"opc.tcp://127.0.0.1:{self.port}/"
        self.certificate = folder / "server.der"
        self._key = folder / "server.pem"
        self.conditions: dict[str, Any] = {}
        self._loop = asyncio.new_event_loop()
        self._thread = Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self._call(self._start())

    def start(self) -> None:
        """Listen again after a stop; tags and conditions are kept, sessions and subscriptions are not."""
        self._call(self.server.start())

    def reset(self) -> None:
        """Set every tag to zero and clear all conditions."""
        self.users.certificates.clear()
        for name, value in (("word", 0), ("code", 0), ("flag", False), ("text", "")):
            self.write(name, value)
        for name in ("Alarm", "Warning", "StopReason"):
            self.write(name, [self.alarm(0)])
        for name in self.conditions:
            self.condition(name, active=False)

    def _call(self, work: Coroutine[Any, Any, Any]) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(60)

    async def _start(self) -> None:
        self.users = _Users(self._password)
        server = Server(user_manager=self.users)
        server.iserver.bind_condition_methods = True
        await server.init()
        server.set_endpoint(self.url)
        await server.set_application_uri("urn:test:server")
        await setup_self_signed_certificate(
            self._key, self.certificate, "urn:test:server", "localhost", [ExtendedKeyUsageOID.SERVER_AUTH], {}
        )
        await server.load_certificate(self.certificate)
        await server.load_private_key(self._key)
        server.set_security_policy(_POLICIES)
        number = await server.register_namespace("urn:test")
        self.namespace = number
        self.nodes: dict[str, Any] = {}
        self.machine = await server.nodes.objects.add_object(ua.NodeId("Machine", number), "Machine")
        for name, value, kind in (
            ("word", 0, ua.VariantType.UInt16),
            ("code", 0, ua.VariantType.UInt32),
            ("flag", False, ua.VariantType.Boolean),
            ("text", "", ua.VariantType.String),
            ("float", 0.0, ua.VariantType.Double),
        ):
            self.nodes[name] = await self.machine.add_variable(ua.NodeId(name, number), name, value, kind)
        await self._add_packml(server, number)
        await server.start()
        self.server = server

    async def _add_packml(self, server: Server, number: int) -> None:
        fields = [
            new_struct_field("ID", ua.VariantType.Int32),
            new_struct_field("Value", ua.VariantType.Int32),
            new_struct_field("Message", ua.VariantType.String),
            new_struct_field("Category", ua.VariantType.Int32),
            new_struct_field("Trigger", ua.VariantType.Boolean),
        ]
        await new_struct(server, number, "PackMLAlarm", fields)
        await server.load_data_type_definitions()
        self.admin = await server.nodes.objects.add_object(ua.NodeId("Admin", number), "Admin")
        for name in ("Alarm", "Warning", "StopReason"):
            self.nodes[name] = await self.admin.add_variable(ua.NodeId(name, number), name, [self.alarm(0)])

    @staticmethod
    def alarm(number: int, message: str = "", *, trigger: bool = False) -> Any:
        return ua.PackMLAlarm(ID=number, Message=message, Trigger=trigger)

    def write(self, name: str, value: Any) -> None:
        self._call(self.nodes[name].write_value(value, _TYPES.get(name)))

    def write_all(self, name: str, values: list[Any]) -> None:
        """Write values one after the other as fast as possible."""

        async def writing() -> None:
            for value in values:
                await self.nodes[name].write_value(value, _TYPES[name])
                await asyncio.sleep(0)

        self._call(writing())

    def add_fault(self, name: str) -> None:
        """Add a Boolean tag."""
        self._call(self.machine.add_variable(ua.NodeId(name, self.namespace), name, False))  # noqa: FBT003

    def remove(self, name: str) -> None:
        """Delete a node."""
        self._call(self.server.delete_nodes([self.nodes[name]]))

    def restore(self, name: str, value: Any) -> None:
        """Add a tag again."""

        async def adding() -> None:
            number = ua.NodeId(name, self.namespace)
            self.nodes[name] = await self.machine.add_variable(number, name, value, _TYPES[name])

        self._call(adding())

    def packml(self, *numbers: int) -> None:
        """Set the active alarms of the array Alarm."""
        self.write("Alarm", [self.alarm(number, trigger=True) for number in numbers])

    def add_packml_members(self, folder: str, elements: int) -> None:
        """Add an Admin folder whose array Alarm has a node for each member of each element."""

        async def adding() -> None:
            admin = await self.server.nodes.objects.add_object(ua.NodeId(folder, self.namespace), folder)
            array = await admin.add_object(ua.NodeId(f"{folder}.Alarm", self.namespace), "Alarm")
            for number in range(elements):
                element = await array.add_object(ua.NodeId(f"{folder}.{number}", self.namespace), str(number))
                for member, value in (("Trigger", False), ("ID", 0), ("Message", "")):
                    name = f"{number}.{member}"
                    node = ua.NodeId(f"{folder}.{name}", self.namespace)
                    self.nodes[name] = await element.add_variable(node, member, value)

        self._call(adding())

    def restore_packml(self, name: str) -> None:
        """Add an array again."""

        async def adding() -> None:
            number = ua.NodeId(name, self.namespace)
            self.nodes[name] = await self.admin.add_variable(number, name, [self.alarm(0)])

        self._call(adding())

    def condition_series(self, names: list[str]) -> None:
        """Raise and clear conditions one after the other as fast as possible."""

        async def sending() -> None:
            for name in names:
                for active in (True, False):
                    await self._condition(name, active=active, message="", source="")
                await asyncio.sleep(0)

        self._call(sending())

    def conditions_active(self, *names: str) -> None:
        """Activate conditions without a source name."""
        for name in names:
            self._call(self._condition(name, active=True, message="", source=""))

    def condition(self, name: str, *, active: bool, message: str = "", acked: bool = False) -> None:
        """Send an event of a condition; it is retained while it is active."""
        self._call(self._condition(name, active=active, message=message, acked=acked))

    async def _condition(
        self, name: str, *, active: bool, message: str, source: str = "Infeed", acked: bool = False
    ) -> None:
        if name not in self.conditions:
            made = await self.server.get_event_generator(ua.ObjectIds.AlarmConditionType, ua.ObjectIds.Server)
            made.event.add_property(
                "NodeId", ua.NodeId(f"condition {name}", self.namespace), ua.VariantType.NodeId
            )
            made.event.SourceName, made.event.ConditionName, made.event.Severity = source, name, 500
            self.conditions[name] = made
        event = self.conditions[name].event
        event.Retain = active
        setattr(event, "ActiveState/Id", active)
        setattr(event, "AckedState/Id", acked)
        await self.conditions[name].trigger(message=message or name)

    def stop(self) -> None:
        """Close all connections and stop listening."""
        self._call(self.server.stop())

    def close(self) -> None:
        self.stop()
        self._call(_cancel_tasks())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


async def _cancel_tasks() -> None:
    tasks = asyncio.all_tasks() - {asyncio.current_task()}
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
