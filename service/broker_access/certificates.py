"""A private certificate authority on disk, and the certificates that it signs."""

import ipaddress
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from service.errors import Conflict, InputRejected

AUTHORITY_VALIDITY = timedelta(days=3650)
VALIDITY = timedelta(days=730)
_CLOCK_SKEW = timedelta(hours=1)  # tolerated on computers whose clock is behind
_SERVERS = ("broker", "api")
_CLIENT = "client-"
_MAX_COMMON_NAME = 64  # characters


@dataclass(frozen=True)
class CertificateFiles:
    """A certificate and its key, in the files ``name.pem`` and ``name.key``."""

    folder: Path
    name: str

    @property
    def certificate(self) -> Path:
        """The public certificate."""
        return self.folder / f"{self.name}.pem"

    @property
    def key(self) -> Path:
        """The private key."""
        return self.folder / f"{self.name}.key"


@dataclass(frozen=True)
class Authority:
    """Signs certificates; its key stays in the folder."""

    folder: Path
    now: datetime

    @property
    def files(self) -> CertificateFiles:
        """The authority's own certificate and key."""
        return CertificateFiles(self.folder, "ca")

    def create(self, *, hosts: Iterable[str], clients: Iterable[str]) -> list[CertificateFiles]:
        """Create an authority and certificates of broker, API and clients; nothing is overwritten.

        In a folder with an authority only missing certificates are created.
        """
        wanted = [*_SERVERS, *(f"{_CLIENT}{client}" for client in clients)]
        names = list(dict.fromkeys(hosts))
        with _map_write_errors(self.folder):
            self.folder.mkdir(parents=True, exist_ok=True)  # not 0o700: the broker reads its key
            new = not self.files.certificate.exists()
            if new:
                _refuse_to_overwrite(CertificateFiles(self.folder, name) for name in ("ca", *wanted))
                self._create_authority()
            missing = [name for name in wanted if not CertificateFiles(self.folder, name).certificate.exists()]
            if not missing:
                raise Conflict(f"{self.folder} already has all of these. To renew them: --renew")
            _refuse_to_overwrite(CertificateFiles(self.folder, name) for name in missing)
            return [self._sign(name, [] if name.startswith(_CLIENT) else names) for name in missing]

    def renew(self) -> list[CertificateFiles]:
        """Renew every certificate of the folder for the same names, with new keys; the authority stays."""
        with _map_write_errors(self.folder):
            names = sorted(
                path.stem
                for path in self.folder.glob("*.pem")
                if path.stem in _SERVERS or path.stem.startswith(_CLIENT)
            )
            if not names:
                raise InputRejected(
                    f"{self.folder} has no certificates to renew. Create them first, without --renew."
                )
            return [self._sign(name, hosts_of(CertificateFiles(self.folder, name).certificate)) for name in names]

    def _create_authority(self) -> None:
        key, name = ec.generate_private_key(ec.SECP256R1()), _name("Alarmcast plant authority")
        usage = _usage(signs_certificates=True)
        builder = (
            _builder(name, name, key, self.now, AUTHORITY_VALIDITY)
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(usage, critical=True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        )
        _write(self.files, builder.sign(key, hashes.SHA256()), key)

    def _sign(self, name: str, hosts: list[str]) -> CertificateFiles:
        authority = _certificate(self.files.certificate)
        signing = _key(self.files.key)
        end = authority.not_valid_after_utc
        if end <= self.now:
            raise InputRejected(
                f"The authority in {self.folder} expired on {end:%Y-%m-%d}. Create a new one in another folder."
            )
        key = ec.generate_private_key(ec.SECP256R1())
        is_client = name.startswith(_CLIENT)
        purpose = ExtendedKeyUsageOID.CLIENT_AUTH if is_client else ExtendedKeyUsageOID.SERVER_AUTH
        subject = _name(name.removeprefix(_CLIENT) if is_client else hosts[0])
        builder = (
            _builder(subject, authority.subject, key, self.now, min(VALIDITY, end - self.now))
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_usage(signs_certificates=False), critical=True)
            .add_extension(x509.ExtendedKeyUsage([purpose]), critical=False)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
            .add_extension(
                x509.AuthorityKeyIdentifier.from_issuer_public_key(signing.public_key()), critical=False
            )
        )
        if hosts:
            builder = builder.add_extension(x509.SubjectAlternativeName(map(_alternative, hosts)), critical=False)
        files = CertificateFiles(self.folder, name)
        _write(files, builder.sign(signing, hashes.SHA256()), key)
        return files


def expires_at(path: Path) -> datetime:
    """Return when the first certificate of a PEM file expires."""
    return _certificate(path).not_valid_after_utc


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey, now: datetime, validity: timedelta
) -> x509.CertificateBuilder:
    begin = now.astimezone(UTC).replace(microsecond=0)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(begin - _CLOCK_SKEW)
        .not_valid_after(begin + validity)
    )


def _usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs_certificates,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text[:_MAX_COMMON_NAME])])


def _alternative(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        pass
    try:
        return x509.DNSName(host)
    except ValueError:
        raise InputRejected(f"{host!r} is not a host name; write it in ASCII, as in DNS.") from None


def hosts_of(path: Path) -> list[str]:
    """Return the host names and addresses of a certificate."""
    extensions = _certificate(path).extensions
    try:
        names = extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return []
    return [str(name.value) for name in names]


def _certificate(path: Path) -> x509.Certificate:
    try:
        return x509.load_pem_x509_certificate(path.read_bytes())
    except (OSError, ValueError) as error:
        raise InputRejected(f"{path} cannot be read as a certificate: {error}.") from None


def _key(path: Path) -> ec.EllipticCurvePrivateKey:
    try:
        key = serialization.load_pem_private_key(path.read_bytes(), password=None)
    except (OSError, ValueError, TypeError) as error:
        raise InputRejected(f"{path} cannot be read as a key: {error}.") from None
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise InputRejected(f"{path} is not a key that this command has created.")
    return key


def _write(files: CertificateFiles, certificate: x509.Certificate, key: ec.EllipticCurvePrivateKey) -> None:
    """Write both files atomically, the key first; only its owner can read the key."""
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    _put(files.key, private, 0o600)
    _put(files.certificate, certificate.public_bytes(serialization.Encoding.PEM), 0o644)


def _put(path: Path, content: bytes, mode: int) -> None:
    temporary = path.with_name(f".{path.name}.new")
    temporary.unlink(missing_ok=True)
    file = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    with os.fdopen(file, "wb") as opened:
        opened.write(content)
        opened.flush()
        os.fsync(opened.fileno())
    temporary.replace(path)


def _refuse_to_overwrite(pairs: Iterable[CertificateFiles]) -> None:
    for files in pairs:
        for path in (files.certificate, files.key):
            if path.exists():
                raise Conflict(f"{path} already exists and is not overwritten. Choose another folder, or --renew.")


@contextmanager
def _map_write_errors(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise InputRejected(f"Cannot write to {folder}: {error.strerror}.") from None
