"""What certificates say: whose they are and until when; and, in words, why a line could not be made."""

import socket
import ssl
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.x509.oid import NameOID

from colonnade.errors import InputError
from colonnade.storage import MAX_SECRET_BYTES, read_file, read_private
from colonnade.transports.endpoints import PartyEndpoint, Tls
from colonnade.transports.passphrases import ENCRYPTED, needed_passphrase, passphrase, wrong_passphrase

WARNED_BEFORE = timedelta(days=30)
PROBE_SECONDS = 5.0
TABLE = "[tls]"
# OpenSSL's numbers of what is wrong with a certificate (x509_vfy.h).
NOT_YET_VALID, EXPIRED, OTHER_NAME = 9, 10, 62
# OpenSSL's words where the other end does not speak TLS.
NOT_TLS = (
    "WRONG_VERSION_NUMBER",
    "HTTP_REQUEST",
    "PACKET_LENGTH_TOO_LONG",
    "RECORD_LAYER_FAILURE",
    "UNEXPECTED_MESSAGE",
)
NOBODY = "nobody answers there"
NO_TLS = "what answers there speaks plaintext, and this party TLS: the server has no [tls], or it is another service"
WANTS_TLS = "the server speaks TLS, and this party plaintext: its party.toml needs a [tls]"
HUNG_UP = "the server hung up before certificates were compared: it is another service, or has no TLS 1.3"
TRIAL = "`colonnade certs new` makes certificates for a trial"


@dataclass(frozen=True)
class Certified:
    """What a certificate says. Names are its common name and its DNS names: an e-mail or web address is no name."""

    names: frozenset[str]
    serial: int
    begins: datetime
    ends: datetime

    @classmethod
    def read(cls, pem: bytes) -> "Certified":
        """Read the first certificate of a PEM file."""
        return cls.of(x509.load_pem_x509_certificate(pem))

    @classmethod
    def of(cls, certificate: x509.Certificate) -> "Certified":
        """Read a certificate."""
        names = {str(name.value) for name in certificate.subject.get_attributes_for_oid(NameOID.COMMON_NAME)}
        try:
            others = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
            names.update(others.get_values_for_type(x509.DNSName))
        except x509.ExtensionNotFound:
            pass
        begins, ends = certificate.not_valid_before_utc, certificate.not_valid_after_utc
        return cls(frozenset(names), certificate.serial_number, begins, ends)

    def problem(self, now: datetime) -> str | None:
        """Say why it is not valid now; None if it is."""
        if now > self.ends:
            return f"expired on {_day(self.ends)}"
        return f"is not valid before {_day(self.begins)}" if now < self.begins else None

    def warning(self, now: datetime) -> str | None:
        """Say that it is about to expire; None if it is not."""
        left = self.ends - now
        return f"expires on {_day(self.ends)}, in {left.days} days" if left < WARNED_BEFORE else None


@dataclass(frozen=True)
class Credentials:
    """What an end shows, and whom it believes: PEM. The key is not encrypted here, and never shown."""

    authority: bytes
    certificate: bytes
    key: bytes

    def is_pair(self) -> bool:
        """Tell whether the key is the certificate's."""
        own = serialization.load_pem_private_key(self.key, None).public_key()
        return own == x509.load_pem_x509_certificate(self.certificate).public_key()

    def __repr__(self) -> str:
        return "Credentials(not shown)"


def read_credentials(tls: Tls) -> Credentials:
    """Read the three files, each time anew: a certificate that was renewed is used by the next line."""
    try:
        key = read_private(Path(tls.key))
        authority, certificate = (
            read_file(Path(path).resolve(), MAX_SECRET_BYTES) for path in (tls.authority, tls.certificate)
        )
    except (OSError, ValueError) as error:
        raise InputError(f"Cannot read a file of [tls]: {error}. Correct that; {TRIAL}.") from error
    return Credentials(authority, certificate, _decrypted(key, tls))


def check_own(tls: Tls, name: str | None = None) -> None:
    """Require a certificate that is valid, belongs to its key and has this name, of an authority that is valid."""
    found = read_credentials(tls)
    try:
        shown = x509.load_pem_x509_certificate(found.certificate)
        authorities = [Certified.of(each) for each in x509.load_pem_x509_certificates(found.authority)]
        is_pair = found.is_pair()
    except (ValueError, TypeError) as error:
        raise InputError(f"{tls.certificate}, its key or {tls.authority} is not PEM: {error}. {TRIAL}.") from error
    certified, now = Certified.of(shown), datetime.now(UTC)
    if problem := certified.problem(now):
        raise InputError(f"The certificate {tls.certificate} {problem}. Put a new one in its place.")
    if all(each.problem(now) for each in authorities):
        raise InputError(f"{tls.authority} {authorities[0].problem(now)}, and all it signed with it. Make a new one.")
    if not is_pair:
        raise InputError(f"{tls.key} is not the key of {tls.certificate}. Name the two that belong together.")
    if name is not None and name not in certified.names:
        raise InputError(
            f"The certificate {tls.certificate} is of {_listed(certified.names)}, and this party is {name!r}: the "
            "server would take it for another party. Name the party's own certificate, or correct its name."
        )


def warnings_of_own(tls: Tls) -> list[str]:
    """Say which of an end's certificates expire soon; one that cannot be read now is left to who needs it."""
    try:
        found, now = read_credentials(tls), datetime.now(UTC)
        authorities = [Certified.of(each) for each in x509.load_pem_x509_certificates(found.authority)]
        last = max(authorities, key=lambda each: each.ends)
        return [
            f"Warning: the certificate {path} {warning}. Put a new one in its place before."
            for path, each in ((tls.certificate, Certified.read(found.certificate)), (tls.authority, last))
            if (warning := each.warning(now))
        ]
    except (InputError, ValueError):
        return []


def shown_serial(endpoint: PartyEndpoint, tls: Tls) -> int:
    """Dial without gRPC, and read the serial of the certificate that the server shows."""
    with _connected(endpoint, tls, ssl.CERT_REQUIRED) as line:
        shown = line.getpeercert(binary_form=True)
    return x509.load_der_x509_certificate(shown or b"").serial_number


def why_no_line(endpoint: PartyEndpoint) -> str | None:
    """Dial once more, without gRPC, and say what is wrong; None if nothing is, or nothing that can be told."""
    try:
        if endpoint.tls is None:
            return _in_the_clear(endpoint)
        return _of_own(endpoint.tls) or _of_both(endpoint, endpoint.tls)
    except ssl.SSLError as error:
        return NO_TLS if error.reason in NOT_TLS else HUNG_UP
    except (ConnectionResetError, BrokenPipeError):
        return HUNG_UP
    except (InputError, ValueError):
        return None
    except OSError as error:
        return f"{NOBODY} ({error.strerror or error})"


def _of_own(tls: Tls) -> str | None:
    own = read_credentials(tls)
    try:
        if problem := Certified.read(own.certificate).problem(datetime.now(UTC)):
            return f"this party's own certificate {problem}"
        return None if own.is_pair() else "this party's own certificate is not that of its key"
    except ValueError:
        return "this party's own certificate, or its key, is not PEM"


def _of_both(endpoint: PartyEndpoint, tls: Tls) -> str | None:
    try:
        return _shaken_hands(endpoint, tls)
    except ssl.SSLCertVerificationError as error:
        return _of_server(endpoint, tls, error)


def _in_the_clear(endpoint: PartyEndpoint) -> str | None:
    """Try TLS, which this party does not: whoever answers in it takes no other words. It is shown and told nothing."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.set_alpn_protocols(["h2"])
    try:
        with _wrapped(context, endpoint):
            return WANTS_TLS
    except ssl.SSLError as error:
        return None if error.reason in NOT_TLS else WANTS_TLS
    except (ConnectionResetError, BrokenPipeError):
        return None


def _shaken_hands(endpoint: PartyEndpoint, tls: Tls) -> str | None:
    """Wait for the server's first byte: TLS 1.3 is done on this side before the server has judged the certificate."""
    with _connected(endpoint, tls, ssl.CERT_REQUIRED) as line:
        try:
            heard = line.recv(1)
        except (ConnectionResetError, ssl.SSLError):
            heard = b""
    if heard:
        return None
    return (
        "the server hung up when it saw this party's certificate: it was not signed by the ca.pem of the server, is "
        "revoked there, or has expired by the server's clock"
    )


def _of_server(endpoint: PartyEndpoint, tls: Tls, error: ssl.SSLCertVerificationError) -> str:
    with _connected(endpoint, tls, ssl.CERT_NONE) as line:
        shown = line.getpeercert(binary_form=True)
    found = None if shown is None else Certified.of(x509.load_der_x509_certificate(shown))
    if found is not None and error.verify_code in (NOT_YET_VALID, EXPIRED):
        return f"the server's certificate {found.problem(datetime.now(UTC)) or error.verify_message}"
    if found is not None and error.verify_code == OTHER_NAME:
        return f"the server's certificate is of {_listed(found.names)}, not of {endpoint.server_name!r}"
    return f"the server's certificate was not signed by {Path(tls.authority).name} ({error.verify_message})"


def _connected(endpoint: PartyEndpoint, tls: Tls, verify: ssl.VerifyMode) -> ssl.SSLSocket:
    context = ssl.create_default_context(cafile=tls.authority)
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT  # gRPC is not so strict
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.check_hostname = verify is not ssl.CERT_NONE
    context.verify_mode = verify
    context.load_cert_chain(tls.certificate, tls.key, lambda: passphrase(tls, TABLE) or b"")
    context.set_alpn_protocols(["h2"])
    return _wrapped(context, endpoint)


def _wrapped(context: ssl.SSLContext, endpoint: PartyEndpoint) -> ssl.SSLSocket:
    address, _, port = endpoint.server.rpartition(":")
    line = socket.create_connection((address.strip("[]"), int(port)), timeout=PROBE_SECONDS)
    try:
        return context.wrap_socket(line, server_hostname=endpoint.server_name)
    except BaseException:
        line.close()
        raise


def _decrypted(key: bytes, tls: Tls) -> bytes:
    if ENCRYPTED not in key:
        return key
    secret = needed_passphrase(tls, TABLE, tls.key)
    try:
        opened = serialization.load_pem_private_key(key, secret)
    except ValueError:
        raise wrong_passphrase(tls.key) from None
    return opened.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


def _day(when: datetime) -> str:
    return f"{when:%Y-%m-%d %H:%M} UTC"


def _listed(names: frozenset[str]) -> str:
    return " and ".join(map(repr, sorted(names))) or "nobody"
