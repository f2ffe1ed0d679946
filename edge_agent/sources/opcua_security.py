"""Certificates of an OPC UA client."""

import os
import socket
from pathlib import Path

from asyncua import Client, ua
from asyncua.crypto import security_policies
from asyncua.crypto.cert_gen import setup_self_signed_certificate
from asyncua.crypto.uacrypto import load_certificate
from cryptography import x509
from cryptography.x509.oid import ExtendedKeyUsageOID

from edge_agent.sources.signals import Unreachable


def _has_certificates(certificate: Path, private_key: Path, server_certificate: Path) -> bool:
    """Return whether we have a certificate of our own, or raise if the server's is missing."""
    if not server_certificate.is_file():
        raise Unreachable(f"there is no file {server_certificate}; export the server's certificate to it")
    return certificate.exists() or private_key.exists()


async def make_secure(
    client: Client,
    *,
    policy: str,
    mode: str,
    certificate: Path,
    private_key: Path,
    server_certificate: Path,
) -> None:
    """Sign and encrypt with these certificates; make our own if neither file exists.

    Only the server with ``server_certificate`` is trusted.
    """
    if not _has_certificates(certificate, private_key, server_certificate):
        await _make_certificate(certificate, private_key)
    client.application_uri = await _application_uri(certificate)
    await client.set_security(
        getattr(security_policies, f"SecurityPolicy{policy}"),
        certificate,
        private_key,
        server_certificate=str(server_certificate),
        mode=ua.MessageSecurityMode[mode],
    )


async def log_in_with_certificate(
    client: Client, certificate: Path, private_key: Path, password: str | None
) -> None:
    """Log in as the user of a certificate; ``password`` is that of its key."""
    for file in (certificate, private_key):
        if not file.is_file():
            raise Unreachable(f"there is no file {file}; correct user_certificate and user_private_key")
    await client.load_client_certificate(str(certificate))
    await client.load_private_key(private_key, password)


async def _make_certificate(certificate: Path, private_key: Path) -> None:
    host = socket.gethostname()
    before = os.umask(0o077)
    try:
        await setup_self_signed_certificate(
            private_key,
            certificate,
            f"urn:{host}:alarmcast-edge",
            host,
            [ExtendedKeyUsageOID.CLIENT_AUTH],
            {"commonName": "alarmcast-edge", "organizationName": "alarmcast"},
        )
    finally:
        os.umask(before)


async def _application_uri(certificate: Path) -> str:
    """Return the application URI that the certificate names; a server compares it with ours."""
    names = (await load_certificate(certificate)).extensions.get_extension_for_class(x509.SubjectAlternativeName)
    return next(iter(names.value.get_values_for_type(x509.UniformResourceIdentifier)), "urn:alarmcast-edge")
