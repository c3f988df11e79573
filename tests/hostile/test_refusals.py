"""What refusals tell: an error is put into words before the policy looks at the reply that it takes the place of."""

import re
from pathlib import Path

import numpy as np

from colonnade.evaluation.clustering import AskRoundedDistances
from colonnade.evaluation.masked.messages import DeliverMasked
from colonnade.evaluation.masked.ring import LARGEST_ERROR, rounded_by
from colonnade.evaluation.masked.server import AppliedModel, MaskedParts, masked_parts
from colonnade.kernels.arrays import Floats
from colonnade.messages import UNCOUNTED, Message, Reveals, sendable_floats, sendable_rows
from colonnade.protocol.refusal import Refused
from colonnade.protocol.viewing import Moments, UseFrame
from colonnade.sampling.selecting import Ready, UseRows, use_rows
from colonnade.solvers.whitened_columns import AskWhitenedColumns
from hostile_trial import N_ROWS, HostileServer, features_of, hostile_server, made_parties, one_hot

TARGET = "party1"
NOTHING_AT_ALL = {"never": [str(kind) for kind in Reveals if kind not in UNCOUNTED], "rows_a_day": 1}


def number_in_refusal(server: HostileServer, request: Message, words: str) -> float:
    """Read the number that a refusal puts after these words."""
    reply = server.ask(TARGET, request)
    assert isinstance(reply, Refused)
    found = re.search(rf"{words} ([0-9.e+-]+) ", reply.reason)
    assert found, reply.reason
    return float(found[1])


def column_by_small_units(server: HostileServer, column: int, width: int) -> Floats:
    """Distances in units so small that they cannot be rounded: the refusal says how large they are, in six digits.

    To a centre far away, of two rows, that is how far these are apart in one column: all rows less row 0, and by pairs
    with row 1 on which side. 100 rows of any column to six digits; nothing is ever answered but "ready".
    """
    far, unit = 1e6, 1e-80
    centers = sendable_floats(far * one_hot(column, width)[np.newaxis])
    scale = sendable_floats(np.where(np.arange(width) == column, unit, 1e99))

    def apart(first: int, second: int) -> float:
        server.told(TARGET, UseRows(sendable_rows([first, second])), Ready)
        request = AskRoundedDistances(centers, scale, 16, 0)
        return number_in_refusal(server, request, "Numbers up to") * unit**2 / far

    return _on_a_line([apart(0, row) for row in range(1, N_ROWS)], [apart(1, row) for row in range(2, N_ROWS)])


def column_by_fine_steps(server: HostileServer) -> Floats:
    """Rows that weigh nothing, beside two of which one weighs next to nothing, lie far out: no step is coarse enough.

    The refusal says how far, in six digits and units of how far rows 0 and 1 are apart. A single column of 40 rows up
    to shift and unit.
    """

    n_rows = server.roster.n_rows

    def away(centre: int, other: int, row: int) -> float:
        weights = one_hot(centre, n_rows) + 1e-18 * one_hot(other, n_rows)
        server.told(TARGET, UseFrame("train", "own", None, None, sendable_floats(weights)), Moments)
        server.told(TARGET, UseRows(sendable_rows([row])), Ready)
        return number_in_refusal(server, AskWhitenedColumns(1e-6, 0), "for values") * 1e-15

    return _on_a_line(
        [1.0, *(away(0, 1, row) for row in range(2, n_rows))], [away(1, 0, row) for row in range(2, n_rows)]
    )


def value_by_bisection(server: HostileServer, row: int) -> float:
    """Deliver to the target, under masks, what a coefficient makes of its own row, so coarsely that it may refuse that.

    It refuses if the number is small beside the ring's step: a bit a run. By bisection |x| of one row and column to
    0.2 %, 30 runs, 1 s. The party that learns the sum sends no part, so that its policy sees nothing to refuse; the
    others' parts are zeros.
    """
    magnitude, low, high = 80, 1e5, 1e17
    rows, n_columns = np.array([row]), len(server.roster.feature_names)
    while high > 1.0005 * low:
        coefficient = float(np.sqrt(low * high))
        server.new_run("predict", None, None, None)
        server.play(use_rows(server.roster, rows))
        model = AppliedModel(coefficient * one_hot(0, n_columns), None, None, 0.0, TARGET)
        parts = server.play(masked_parts(server.roster, rows, model, magnitude))
        assert isinstance(parts, MaskedParts)
        reply = server.ask(TARGET, DeliverMasked(parts.of_others(TARGET), 0.0))
        low, high = (coefficient, high) if isinstance(reply, Refused) else (low, coefficient)
    return rounded_by(magnitude, len(server.roster.cards)) / LARGEST_ERROR / low


def _on_a_line(from_first: list[float], from_second: list[float]) -> Floats:
    """Place numbers by how far each is from the first, 0, and from the second."""
    unit = from_first[0]
    others = [
        min((near, -near), key=lambda place: abs(abs(place - unit) - far))
        for near, far in zip(from_first[1:], from_second, strict=True)
    ]
    return np.array([0.0, unit, *others])


def test_a_refusal_tells_how_far_apart_rows_are(tmp_path: Path) -> None:
    parties = made_parties()
    with hostile_server(tmp_path, parties, NOTHING_AT_ALL) as server:
        found = column_by_small_units(server, 2, 3)
        assert server.disclosed() == set()
    truth = features_of(parties[0])[:, 2]
    sign = np.sign(truth[1] - truth[0])
    np.testing.assert_allclose(truth[0] + sign * found, truth, atol=1e-4)


def test_a_refusal_tells_how_far_out_a_row_is(tmp_path: Path) -> None:
    parties = made_parties(40, widths=(1, 4, 3))
    with hostile_server(tmp_path, parties, NOTHING_AT_ALL) as server:
        found = column_by_fine_steps(server)
        assert server.disclosed() == set()
    truth = features_of(parties[0])[:, 0]
    np.testing.assert_allclose(truth[0] + (truth[1] - truth[0]) * found, truth, atol=1e-3)


def test_whether_a_delivery_is_refused_tells_a_value(tmp_path: Path) -> None:
    parties = made_parties()
    with hostile_server(tmp_path, parties, policies={TARGET: NOTHING_AT_ALL}) as server:
        found = value_by_bisection(server, 17)
        assert server.disclosed(TARGET) == set()
    assert np.isclose(found, abs(features_of(parties[0])[17, 0]), rtol=5e-3)
