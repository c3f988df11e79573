"""A log as a chain: every line has its number and the digest of the line before; checkpoints are signed by its owner.

A line that is changed, cut, added or moved breaks the chain there. Who can write the file could make the rest of the
chain anew, but not the signatures: what stands before the last signed checkpoint is as it was written.
"""

import hashlib
from collections.abc import Iterable, Iterator
from itertools import chain, pairwise
from typing import Any, BinaryIO, NamedTuple

import msgspec

from colonnade.privacy.identities import Pins, is_signed
from colonnade.signing import digest

# In every signed text, so that none of another protocol, or of another version, can take its place.
PROTOCOL = b"colonnade log 1"
CHECKPOINT, DIFFERS = "checkpoint", "log differs"
# No line is longer.
MAX_LINE = 1 << 20


class Head(NamedTuple):
    """The last line of a log: its number, and its digest in hexadecimal."""

    number: int = 0
    digest: str = "0" * 64

    def encoded(self) -> bytes:
        """Give it as a text that always has the same length."""
        return f"{self.number:020d} {self.digest}\n".encode()


class LogLine(msgspec.Struct, frozen=True):
    """What every line has."""

    event: str
    line: int
    before: str
    party: str = ""
    signature: str = ""
    expected: int = 0
    found: int = 0


class Finding(msgspec.Struct, frozen=True):
    """Something that is not as it was written, and where: counted from the first line of the file."""

    line: int
    what: str


class LogReport(msgspec.Struct, frozen=True):
    """What came of looking at a log."""

    party: str
    lines: int
    checkpoints: int
    signed_to: int
    findings: list[Finding]


_decoder: msgspec.json.Decoder[LogLine] = msgspec.json.Decoder(LogLine)


def chained(head: Head, facts: dict[str, object]) -> tuple[bytes, Head]:
    """Write what follows the head of a log as a line, and give the new head."""
    line = msgspec.json.encode({**facts, "line": head.number + 1, "before": head.digest}) + b"\n"
    return line, Head(head.number + 1, _digest(line))


def checkpoint_statement(party: str, head: Head) -> bytes:
    """Give the text that a party signs to say: this is my log so far."""
    return digest(PROTOCOL, party.encode(), head.encoded())


def read_line(raw: bytes) -> LogLine | None:
    """Read a line of a chain; None if it is none."""
    try:
        return _decoder.decode(raw)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return None


def head_of(raw: bytes) -> Head | None:
    """Give the head of a log that ends with this line."""
    line = read_line(raw)
    return None if line is None else Head(line.line, _digest(raw))


def read_head(encoded: bytes) -> Head | None:
    """Read a head that was kept apart from its log."""
    number, _, hashed = encoded.decode("ascii", "replace").strip().partition(" ")
    return Head(int(number), hashed) if number.isdecimal() and len(hashed) == len(Head().digest) else None


def raw_lines(file: BinaryIO) -> Iterator[bytes]:
    """Read lines, none longer than a line may be."""
    return iter(lambda: file.readline(MAX_LINE), b"")


def facts_of(lines: Iterable[bytes]) -> Iterator[dict[str, Any]]:
    """Read all that lines say; what is no line is left out."""
    for raw in lines:
        if read_line(raw) is not None:
            yield msgspec.json.decode(raw)


def verify(lines: Iterable[bytes], pins: Pins, head: Head | None = None) -> LogReport:
    """Look for lines that were changed, cut, added or moved; `head` is where the log ended, if that was kept."""
    last, party, checkpoints, signed_to, place = Head(), "", 0, 0, 0
    findings: list[Finding] = []
    for place, (raw, following) in enumerate(pairwise(chain(lines, [b""])), 1):
        line = read_line(raw) if raw.endswith(b"\n") else None
        if line is None:
            findings.append(Finding(place, "is not a whole line of a log: torn or changed"))
            last = Head(last.number + 1, _digest(raw))
            continue
        if (line.line, line.before) != (last.number + 1, last.digest):
            broken = _broken(place, line, last, is_kept=_follows(following, raw))
            findings.extend([broken] if findings[-1:] != [broken] else [])
        if line.event == CHECKPOINT:
            party = party or line.party
            if line.party == party and _is_ours(line, pins):
                checkpoints, signed_to = checkpoints + 1, place
            else:
                words = f"has no signature of {party!r} on the lines above it: changed, or signed with an older key"
                findings.append(Finding(place, f"{words}, whose pin --pins can name"))
        if line.event == DIFFERS:
            words = f"lines to {line.expected} had been written and lines to {line.found} were found"
            findings.append(Finding(place, f"when the party started here, {words}: cut, changed, or lost with power"))
        last = Head(line.line, _digest(raw))
        if head is not None and head.number == last.number and head.digest != last.digest:
            findings.append(Finding(place, f"was changed: line {head.number} had another digest when it was written"))
    if head is not None and head.number > last.number:
        findings.append(Finding(place, f"is the last, where lines to {head.number} were written: the end was cut off"))
    return LogReport(party, place, checkpoints, signed_to, findings)


def _broken(place: int, line: LogLine, last: Head, *, is_kept: bool) -> Finding:
    """Say how a line does not follow from the one before it; it is as it was if the next line has its digest."""
    if line.line > last.number + 1:
        return Finding(place, f"follows a gap: lines {last.number + 1} to {line.line - 1} are missing before it")
    if line.line <= last.number:
        return Finding(place, f"is out of order, or was added: it says that it is line {line.line}")
    return Finding(place - 1 if is_kept and place > 1 else place, "was changed after it was written")


def _follows(following: bytes, raw: bytes) -> bool:
    """Tell whether the next line, if there is one, has this one's digest."""
    line = read_line(following)
    return not following or (line is not None and line.before == _digest(raw))


def _is_ours(line: LogLine, pins: Pins) -> bool:
    try:
        signature = bytes.fromhex(line.signature)
    except ValueError:
        return False
    return is_signed(pins, line.party, checkpoint_statement(line.party, Head(line.line - 1, line.before)), signature)


def _digest(raw: bytes) -> str:
    return hashlib.sha256(raw).hexdigest()
