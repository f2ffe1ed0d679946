"""Certificates on disk: a private authority for a plant without one, what it signs, and when that ends."""

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

AUTHORITY_LASTS = timedelta(days=3650)
LASTS = timedelta(days=730)
_BACK = timedelta(hours=1)  # a computer whose clock is a little behind must not refuse what is new
_SERVERS = ("broker", "api")
_CLIENT = "client-"
_NAMES = 64  # characters that a common name may have


@dataclass(frozen=True)
class Pair:
    """A certificate and its key, in files ``name.pem`` and ``name.key``."""

    folder: Path
    name: str

    @property
    def certificate(self) -> Path:
        """The file that may be shown."""
        return self.folder / f"{self.name}.pem"

    @property
    def key(self) -> Path:
        """The file that may not."""
        return self.folder / f"{self.name}.key"


@dataclass(frozen=True)
class Authority:
    """Signs for whoever trusts it; its key stays in the folder."""

    folder: Path
    now: datetime

    @property
    def files(self) -> Pair:
        """The authority's own."""
        return Pair(self.folder, "ca")

    def found(self, *, hosts: Iterable[str], clients: Iterable[str]) -> list[Pair]:
        """Make an authority, a certificate each for broker and API, and those of clients; nothing is overwritten.

        In a folder that has an authority already only what is missing is made.
        """
        wanted = [*_SERVERS, *(f"{_CLIENT}{one}" for one in clients)]
        names = list(dict.fromkeys(hosts))
        with _written_to(self.folder):
            self.folder.mkdir(parents=True, exist_ok=True)  # the broker must get at its own key
            new = not self.files.certificate.exists()
            if new:
                _refuse_to_overwrite(Pair(self.folder, name) for name in ("ca", *wanted))
                self._make_authority()
            missing = [name for name in wanted if not Pair(self.folder, name).certificate.exists()]
            if not missing:
                raise Conflict(f"{self.folder} has all of these already. To sign them anew: --renew")
            _refuse_to_overwrite(Pair(self.folder, name) for name in missing)
            return [self._sign(name, [] if name.startswith(_CLIENT) else names) for name in missing]

    def renew(self) -> list[Pair]:
        """Sign every certificate of the folder anew, for the same names and with new keys; the authority stays."""
        with _written_to(self.folder):
            known = sorted(
                path.stem
                for path in self.folder.glob("*.pem")
                if path.stem in _SERVERS or path.stem.startswith(_CLIENT)
            )
            if not known:
                raise InputRejected(
                    f"{self.folder} has no certificates to renew. Make them first, without --renew."
                )
            return [self._sign(name, hosts_of(Pair(self.folder, name).certificate)) for name in known]

    def _make_authority(self) -> None:
        key, name = ec.generate_private_key(ec.SECP256R1()), _name("Alarmcast plant authority")
        usage = _usage(signs_certificates=True)
        builder = (
            _begun(name, name, key, self.now, AUTHORITY_LASTS)
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(usage, critical=True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        )
        _keep(self.files, builder.sign(key, hashes.SHA256()), key)

    def _sign(self, name: str, hosts: list[str]) -> Pair:
        authority = _certificate(self.files.certificate)
        signing = _key(self.files.key)
        end = authority.not_valid_after_utc
        if end <= self.now:
            raise InputRejected(
                f"The authority in {self.folder} ended on {end:%Y-%m-%d}. Found a new one elsewhere."
            )
        key = ec.generate_private_key(ec.SECP256R1())
        is_client = name.startswith(_CLIENT)
        purpose = ExtendedKeyUsageOID.CLIENT_AUTH if is_client else ExtendedKeyUsageOID.SERVER_AUTH
        subject = _name(name.removeprefix(_CLIENT) if is_client else hosts[0])
        builder = (
            _begun(subject, authority.subject, key, self.now, min(LASTS, end - self.now))
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
        pair = Pair(self.folder, name)
        _keep(pair, builder.sign(signing, hashes.SHA256()), key)
        return pair


def ends_at(path: Path) -> datetime:
    """Return when the first certificate of a PEM file ends."""
    return _certificate(path).not_valid_after_utc


def _begun(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey, now: datetime, lasts: timedelta
) -> x509.CertificateBuilder:
    begin = now.astimezone(UTC).replace(microsecond=0)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(begin - _BACK)
        .not_valid_after(begin + lasts)
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
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text[:_NAMES])])


def _alternative(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        pass
    try:
        return x509.DNSName(host)
    except ValueError:
        raise InputRejected(f"{host!r} is no host name; write it in ASCII, as DNS has it.") from None


def hosts_of(path: Path) -> list[str]:
    """Return the names and addresses for which a certificate is good."""
    extensions = _certificate(path).extensions
    try:
        names = extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return []
    return [str(one.value) for one in names]


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
        raise InputRejected(f"{path} is not a key that this command has made.")
    return key


def _keep(pair: Pair, certificate: x509.Certificate, key: ec.EllipticCurvePrivateKey) -> None:
    """Write both files, the key first, each whole or not at all; only their owner reads the key."""
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    _put(pair.key, private, 0o600)
    _put(pair.certificate, certificate.public_bytes(serialization.Encoding.PEM), 0o644)


def _put(path: Path, content: bytes, mode: int) -> None:
    fresh = path.with_name(f".{path.name}.new")
    fresh.unlink(missing_ok=True)
    file = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    with os.fdopen(file, "wb") as opened:
        opened.write(content)
        opened.flush()
        os.fsync(opened.fileno())
    fresh.replace(path)


def _refuse_to_overwrite(pairs: Iterable[Pair]) -> None:
    for pair in pairs:
        for path in (pair.certificate, pair.key):
            if path.exists():
                raise Conflict(
                    f"{path} is there already and is not overwritten. Choose another folder, or --renew."
                )


@contextmanager
def _written_to(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise InputRejected(f"Cannot write to {folder}: {error.strerror}.") from None
