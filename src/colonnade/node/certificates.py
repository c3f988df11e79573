"""A private authority, certificates and identities for a trial: one for the server, one for each party.

Keys of certificates are P-256, read by their owner only. An organisation that runs an authority of its own uses that
instead.
"""

import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from colonnade.errors import InputError
from colonnade.ledger import SERVER
from colonnade.node.identity_files import new_identities
from colonnade.node.state_folder import write_private
from colonnade.storage import read_private

# The purpose of who dials in (RFC 5280, section 4.2.1.12), by number.
DIALS_IN = x509.ObjectIdentifier("1.3.6.1.5.5.7.3.2")
CURVE = ec.SECP256R1
REVOKED = "revoked.toml"
NOTHING_REVOKED = """\
# What no longer counts, as `colonnade certs show` prints it. Read again while a server or a party runs.
serials = []
pins = []
"""
# The authority outlives what it signs: certificates are renewed.
AUTHORITY_DAYS = 3650


def new_certificates(folder: Path, parties: Sequence[str], *, server: str = SERVER, days: int = 90) -> list[Path]:
    """Make an authority, and a certificate and an identity for the server and for each party.

    They go into a new or empty folder, which holds keys, identities, pins.toml and an empty revoked.toml beside the
    certificates that are returned. Server and parties are given ca.pem, the two lists, and their own .pem, .key and
    .identity, and nothing else.
    """
    _check_names([server, *parties])
    if SERVER in parties:
        raise InputError(f"A party cannot be called {SERVER!r}: that is the server's name in pins.toml. Use another.")
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise InputError(f"{folder} is not an empty folder. Name a new one: certificates are not overwritten.")
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    authority_key = ec.generate_private_key(CURVE())
    lasting = max(days, AUTHORITY_DAYS)
    authority = _certificate(
        _name("Colonnade trial authority"), authority_key.public_key(), (None, authority_key), None, lasting
    )
    made = [_write(folder, "ca", authority, authority_key)]
    for name in (server, *parties):
        key = ec.generate_private_key(CURVE())
        purpose = ExtendedKeyUsageOID.SERVER_AUTH if name == server else DIALS_IN
        certificate = _certificate(_name(name), key.public_key(), (authority, authority_key), purpose, days)
        made.append(_write(folder, name, certificate, key))
    new_identities(folder, parties)
    (folder / REVOKED).write_text(NOTHING_REVOKED)
    return made


def renew_certificate(folder: Path, name: str, days: int = 90, *, new_key: bool = False) -> Path:
    """Have the authority of a folder sign a member's certificate again, for its key or a new one; both are replaced."""
    _check_names([name])
    try:
        authority = x509.load_pem_x509_certificate((folder / "ca.pem").read_bytes())
        signer = serialization.load_pem_private_key(read_private(folder / "ca.key"), None)
        old = x509.load_pem_x509_certificate((folder / f"{name}.pem").read_bytes())
        purpose = next(iter(old.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value))
    except (OSError, ValueError, TypeError, x509.ExtensionNotFound) as error:
        raise InputError(
            f"{folder} does not have ca.pem, ca.key and {name}.pem as `colonnade certs new` makes them: {error}. Name "
            "the folder that has."
        ) from error
    key = old.public_key()
    if not isinstance(key, ec.EllipticCurvePublicKey) or not isinstance(signer, ec.EllipticCurvePrivateKey):
        raise InputError(f"{folder} has keys that `colonnade certs new` did not make. Ask your own authority.")
    left = authority.not_valid_after_utc - datetime.now(UTC)
    if left < timedelta(days=days):
        raise InputError(
            f"The authority, {folder / 'ca.pem'}, is valid for {max(left.days, 0)} days more, and what it signs for no "
            f"longer. Pass fewer --days than {days}, or make new certificates for all: `colonnade certs new`."
        )
    if not new_key:
        made = _certificate(old.subject, key, (authority, signer), purpose, days)
        return _write_certificate(folder, name, made)
    fresh = ec.generate_private_key(CURVE())
    return _write(
        folder, name, _certificate(old.subject, fresh.public_key(), (authority, signer), purpose, days), fresh
    )


def _check_names(names: Sequence[str]) -> None:
    for name in names:
        if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,62}", name) or name == "ca":
            raise InputError(
                f"A certificate cannot be made for {name!r}. Use letters, digits, dots and dashes, and not 'ca'."
            )
    if len(set(names)) != len(names):
        raise InputError("Two certificates would have the same name. Give the server and each party a name of its own.")


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def _certificate(
    subject: x509.Name,
    key: ec.EllipticCurvePublicKey,
    issuer: tuple[x509.Certificate | None, ec.EllipticCurvePrivateKey],
    purpose: x509.ObjectIdentifier | None,
    days: int,
) -> x509.Certificate:
    """Sign a key, by an authority, or by itself where there is none above it."""
    is_authority, issuer_key = issuer[0] is None, issuer[1]
    issuer_name = subject if issuer[0] is None else issuer[0].subject
    now = datetime.now(UTC)
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer_name)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(minutes=5))  # clocks differ a little
        .not_valid_after(now + timedelta(days=days))
        .add_extension(x509.BasicConstraints(ca=is_authority, path_length=0 if is_authority else None), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer_key.public_key()), critical=False)
        .add_extension(_usage(signs_others=is_authority), critical=True)
    )
    if purpose is not None:
        common_name = str(subject.get_attributes_for_oid(NameOID.COMMON_NAME)[0].value)
        builder = builder.add_extension(x509.ExtendedKeyUsage([purpose]), critical=False)
        builder = builder.add_extension(x509.SubjectAlternativeName([x509.DNSName(common_name)]), critical=False)
    return builder.sign(issuer_key, hashes.SHA256())


def _usage(*, signs_others: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs_others,
        key_cert_sign=signs_others,
        crl_sign=signs_others,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _write(folder: Path, name: str, certificate: x509.Certificate, key: ec.EllipticCurvePrivateKey) -> Path:
    encoded = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    write_private(folder / f"{name}.key", encoded)
    return _write_certificate(folder, name, certificate)


def _write_certificate(folder: Path, name: str, certificate: x509.Certificate) -> Path:
    """Put it in place whole: who reads it is running."""
    path = folder / f"{name}.pem"
    write_private(path, certificate.public_bytes(serialization.Encoding.PEM))
    path.chmod(0o644)
    return path
