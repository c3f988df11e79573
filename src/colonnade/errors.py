"""Every error and warning Colonnade raises, in one tree.

A message says what is wrong, where (party, column, shape), the value seen, and ends with what to do.
"""

from typing import ClassVar


class ColonnadeError(Exception):
    """Base of everything Colonnade raises on purpose. The command exits with `exit_code`."""

    exit_code: ClassVar[int] = 1


class InputError(ColonnadeError, ValueError):
    """The caller's data or options cannot be used."""

    exit_code = 3


class AlignmentError(InputError):
    """The parties do not hold the same rows, or not those of before: counts, key digests or fingerprints differ."""


class UnsupportedError(InputError):
    """There is no such combination of task, sampler and solver."""


class EngineError(InputError):
    """A party's own cluster cannot be used: it is not reached, or its machines do not see or compute the same.

    Its words name machines: they are for the party's owner, and reach no server.
    """


class ProtocolError(ColonnadeError):
    """The rules of the exchange were broken."""

    exit_code = 4


class LocalProtocolError(ProtocolError):
    """Our side broke the rules: a bug, or calls in an order that is not legal."""


class RemoteProtocolError(ProtocolError):
    """The peer broke the rules: bytes or replies that no honest peer sends.

    Parameters
    ----------
    message : str
        What was wrong.
    party : str or None
        Who sent it, where known.
    kind : str or None
        The kind of message concerned, where known.
    """

    def __init__(self, message: str, *, party: str | None = None, kind: str | None = None) -> None:
        super().__init__(message)
        self.party = party
        self.kind = kind


class PolicyRefusedError(ColonnadeError):
    """The owner of the data does not answer this request.

    Parameters
    ----------
    message : str
        The owner's reason.
    party : str
        Who refused.
    instead : Branches or None
        Of a job that leaves something to choose, a narrower choice that the owner would allow, if there is one.
    """

    exit_code = 6

    def __init__(self, message: str, *, party: str, instead: object = None) -> None:
        super().__init__(message)
        self.party = party
        self.instead = instead


class RunCancelledError(ColonnadeError):
    """Whoever runs the server cancelled the run, for all sides."""

    exit_code = 6


class TransportError(ColonnadeError):
    """The messages could not be carried."""

    exit_code = 5


class PartyUnreachableError(TransportError):
    """A party did not answer.

    Parameters
    ----------
    message : str
        What happened.
    party : str
        Who could not be reached.
    """

    def __init__(self, message: str, *, party: str) -> None:
        super().__init__(message)
        self.party = party


class WireVersionError(TransportError):
    """The two ends speak different versions of the wire format."""


class AssumptionWarning(UserWarning):
    """The data does not meet what the guarantee assumes."""


class ConvergenceWarning(UserWarning):
    """A solver stopped before it reached its tolerance."""


class DisclosureWarning(UserWarning):
    """The chosen combination reveals raw rows or labels."""
