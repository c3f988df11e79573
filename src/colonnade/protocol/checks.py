"""What no honest peer sends, caught at the door: each check names the sender and the kind."""

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from colonnade.contracts import Inbox
from colonnade.errors import LocalProtocolError, RemoteProtocolError
from colonnade.kernels.arrays import Floats, Rows
from colonnade.kernels.possible import PossibleDistances, first_copies, norm_fits
from colonnade.ledger import SERVER
from colonnade.messages import MAX_MAGNITUDE, MIN_MAGNITUDE, Message
from colonnade.signing import SIGNATURE_BYTES

M = TypeVar("M", bound=Message)
# Relative, of sums that honest parties compute.
SLACK = 1e-6
# So many products OpenBLAS adds up on the thread that calls it.
ONE_THREAD = 8192


def replies(inbox: Inbox, kind: type[M]) -> Mapping[str, M]:
    """Narrow an inbox to the kind its script asked for (the conductor checked that each reply answers its request)."""
    narrowed = {party: reply for party, reply in inbox.items() if isinstance(reply, kind)}
    if len(narrowed) != len(inbox):
        raise LocalProtocolError(f"The script expected only {kind.__name__} replies: a bug in its messages.")
    return narrowed


def wrong(party: str, message: Message, what: str) -> RemoteProtocolError:
    """Build the error for a message of this party that breaks the rules."""
    return RemoteProtocolError(
        f"{party!r} sent a {message.kind} with {what}. The run was stopped; nothing of it was used.",
        party=party,
        kind=message.kind,
    )


def positive(party: str, message: Message, value: float) -> None:
    """Require a positive number whose square a float64 holds."""
    if not MIN_MAGNITUDE <= value <= MAX_MAGNITUDE:
        raise wrong(party, message, f"the value {value}, which is not positive, or out of range")


def signature(party: str, message: Message, signed: bytes) -> None:
    """Require what may be a signature, before it is relayed: only who has the signer's pin can tell."""
    if len(signed) != SIGNATURE_BYTES:
        raise wrong(party, message, f"a signature of {len(signed)} bytes, where all have {SIGNATURE_BYTES}")


def shape(party: str, message: Message, array: npt.NDArray[Any], expected: tuple[int, ...]) -> None:
    """Require an array of exactly the expected shape."""
    if array.shape != expected:
        raise wrong(party, message, f"an array of shape {array.shape} where {expected} was asked for")


def in_range(party: str, message: Message, values: Floats) -> None:
    """Require numbers whose squares a float64 holds; NaN and infinity are none."""
    # Most pass by the sum of their squares, in one look; NaN and what overflows do not, of which it says nothing.
    if values.flags.c_contiguous:
        total = np.vdot(values, values) if values.size < ONE_THREAD else _sum_of_squares(values.reshape(-1))
        if total <= MAX_MAGNITUDE**2:
            return
    # Neither extreme misses a NaN; no number is copied.
    if not (values.max(initial=0.0) <= MAX_MAGNITUDE and values.min(initial=0.0) >= -MAX_MAGNITUDE):
        raise wrong(party, message, f"NaN, infinity or a magnitude above {MAX_MAGNITUDE:g} among its numbers")


@np.errstate(over="ignore", invalid="ignore")
def _sum_of_squares(values: Floats) -> float:
    """Add them up in pieces for which BLAS starts no threads: on a busy machine these wait a thousand times longer."""
    whole = len(values) // ONE_THREAD * ONE_THREAD
    pieces, rest = values[:whole].reshape(-1, ONE_THREAD), values[whole:]
    return float(np.vecdot(pieces, pieces).sum() + np.vdot(rest, rest))


def non_negative(party: str, message: Message, values: Floats) -> None:
    """Require numbers of zero or more."""
    in_range(party, message, values)
    if (least := values.min(initial=0.0)) < 0:
        raise wrong(party, message, f"the negative value {least}")


def copies(party: str, message: Message, rows: Rows, values: Floats, error: float = 0.0) -> None:
    """Require one value, within an error, of each row that is there more than once; rows ascend."""
    (again,) = np.nonzero(rows[1:] == rows[:-1])
    apart, allowed = np.abs(values[again + 1] - values[again]), error + SLACK * np.abs(values[again])
    if (apart > allowed).any():
        raise wrong(party, message, "different values of one row")


def unit_columns(party: str, message: Message, rows: Rows, values: Floats, n_rows: int) -> None:
    """Require rows of columns whose variance over n rows is 1; they ascend, and may repeat."""
    own = values[first_copies(rows)]
    if not all(norm_fits(column[:, np.newaxis], n_rows**0.5, 0.0) for column in (own - own.mean(axis=0)).T):
        raise wrong(party, message, "a column that varies more in these rows than its deviation of all rows allows")


def distances(party: str, message: Message, values: Floats, centers: Floats, error: Floats | float = 0.0) -> None:
    """Require squared distances to centres, shape (m, k), that points have; each may be off by so much."""
    possible_distances(party, message, values, PossibleDistances.to(centers), error)


def possible_distances(
    party: str, message: Message, values: Floats, possible: PossibleDistances, error: Floats | float, first: int = 0
) -> None:
    """Require them as `distances` does, of centres that were looked at before, and of rows from `first` on."""
    for row in np.flatnonzero(~possible.fit(values, error))[:1].tolist():
        to = f"{values.shape[1]} centres"
        raise wrong(party, message, f"distances of its row {first + row} to {to} that no point has")


def row_ids(party: str, message: Message, rows: Rows, n_rows: int) -> None:
    """Require a sorted 1-D multiset of rows that exist."""
    if rows.ndim != 1 or (rows.size and (rows[0] < 0 or rows[-1] >= n_rows or np.count_nonzero(rows[1:] < rows[:-1]))):
        raise wrong(party, message, f"row ids that do not ascend within 0..{n_rows - 1}")


def row_id_lists(party: str, message: Message, lists: Sequence[Rows], n_rows: int) -> Rows:
    """Require of several lists what `row_ids` requires of one, and put them one after another."""
    if all(each.ndim == 1 for each in lists):
        rows = np.concatenate([np.empty(0, np.int64), *lists])
        starts = np.cumsum([len(each) for each in lists])
        falls = np.flatnonzero(rows[1:] < rows[:-1]) + 1
        # No more falls than lists: so few are looked for one by one.
        ascend = len(falls) <= len(lists) and {*falls.tolist()} <= {*starts.tolist()}
        if ascend and (not rows.size or (rows.min() >= 0 and rows.max() < n_rows)):
            return rows
    raise wrong(party, message, f"row ids that do not ascend within 0..{n_rows - 1}")


def count(message: Message, number: int, most: int) -> None:
    """Require a number of rows that is not absurd, before anything of that size is made."""
    if not 0 <= number <= most:
        raise wrong(SERVER, message, f"a count of {number} rows, outside 0..{most}")


def seed(message: Message, number: int) -> None:
    """Require a seed a generator takes."""
    if number < 0:
        raise wrong(SERVER, message, f"the negative seed {number}")
