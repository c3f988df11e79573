"""The two ends of a connection between machines: where they meet, with which certificates, within which limits."""

from typing import Annotated

import msgspec

from colonnade.messages import MAX_MESSAGE_BYTES

Seconds = Annotated[float, msgspec.Meta(gt=0)]
MessageBytes = Annotated[int, msgspec.Meta(ge=1024, le=MAX_MESSAGE_BYTES)]
Name = Annotated[str, msgspec.Meta(min_length=1, max_length=64)]


class Tls(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """PEM files. Only certificates of this authority are trusted, whatever the machine trusts.

    The passphrase of an encrypted key is in an environment variable, or in a file.
    """

    authority: str
    certificate: str
    key: str
    passphrase_env: str | None = None
    passphrase_file: str | None = None


class ServerEndpoint(msgspec.Struct, frozen=True):
    """Where a server listens, and for whom. `parties` are in the order of the model's columns.

    `revoked` is a file of certificates and pins that no longer count, at either end.
    """

    parties: Annotated[list[Name], msgspec.Meta(min_length=1)]
    listen: str
    tls: Tls | None = None
    wait_seconds: Seconds = 600.0
    answer_seconds: Seconds = 86400.0
    keepalive_seconds: Seconds = 10.0
    max_message_bytes: MessageBytes = MAX_MESSAGE_BYTES
    revoked: str | None = None


class PartyEndpoint(msgspec.Struct, frozen=True):
    """Whom a party dials, and as whom. `server_name` is the name in the server's certificate."""

    name: Name
    server: str
    server_name: str = "server"
    tls: Tls | None = None
    wait_seconds: Seconds = 600.0
    keepalive_seconds: Seconds = 10.0
    max_message_bytes: MessageBytes = MAX_MESSAGE_BYTES
    revoked: str | None = None
