"""What a secure sum of scores costs beside the plain one, in bytes and seconds.

T parties with scores made up beforehand sum them over m rows: once in the clear, once under masks, through the wire
codec, all in one process. Seconds are of processor time, so that a busy machine hardly shows: of the whole sum, all
parties one after another, and of one party, which is what a run between machines waits for.

    python benchmarks/secure_sum.py [--repeats 3] [--json]
"""

import argparse
import json
import sys
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from os import urandom
from statistics import median

import numpy as np

from colonnade.catalogue import codec, party_session
from colonnade.contracts import Draw, Roster, SumMechanism
from colonnade.data.tables import read_table
from colonnade.kernels.arrays import Floats, Rows
from colonnade.kernels.per_row import numbers_in
from colonnade.ledger import Ledger
from colonnade.messages import Message, sendable_rows
from colonnade.privacy.identities import identities_here
from colonnade.protocol.conductor import Conductor
from colonnade.protocol.hello import hello
from colonnade.protocol.policy import Policy
from colonnade.protocol.session import PartySession
from colonnade.sampling.plain.party import DRAWN, signed_draw
from colonnade.sampling.plain.server import SumInTheClear
from colonnade.sampling.rules.leverage import LeverageScores
from colonnade.sampling.secure.server import SecureSum
from colonnade.signing import SignedRows
from colonnade.transports.loopback import Loopback

N_ROWS = 1_000_000
RULE = LeverageScores(fit_intercept=False)
PARTIES, SIZES = (3, 10, 50), (1_000, 10_000, 100_000)


@dataclass(frozen=True)
class Measurement:
    """One sum: bytes both ways over all parties, seconds in all, and of these at one party."""

    parties: int
    size: int
    mechanism: str
    bytes: int
    seconds: float
    seconds_a_party: float


class TimedLoopback(Loopback):
    """A loop-back that knows how long parties took."""

    def __init__(self, sessions: Mapping[str, PartySession]) -> None:
        super().__init__(sessions)
        self.at_parties = 0.0

    def _ask(self, party: str, request: Message) -> Message:
        started = time.process_time()
        reply = super()._ask(party, request)
        self.at_parties += time.process_time() - started
        return reply


def open_sessions(n_parties: int, scores: Floats) -> dict[str, PartySession]:
    """Open parties whose scores are known already."""
    names = [f"party{number}" for number in range(1, n_parties + 1)]
    identities = identities_here(names, urandom)
    table = read_table("any", np.zeros((N_ROWS, 1)), label=None, key=None, weight=None, split=None)
    sessions = {name: party_session(table, Policy(level="open"), identities[name]) for name in names}
    for session in sessions.values():
        session._data._scores[RULE] = numbers_in(scores)  # what is timed is the sum
    return sessions


def at_round_three(sessions: Mapping[str, PartySession], rows: Rows) -> Draw:
    """Put parties where they are after they have drawn rows: drawing from a million takes longer than the sum."""
    drawn = {}
    for k, (name, session) in enumerate(sessions.items()):
        told = signed_draw(session.state, rows[k :: len(sessions)], session._data)
        session.state = replace(session.state, step=DRAWN, rule=RULE, rows=told.rows, exchanged=())
        drawn[name] = SignedRows(name, told.rows, told.signature)
    totals = {name: float(session._data._scores[RULE].sum()) for name, session in sessions.items()}
    return Draw(rows, drawn, {name: [] for name in sessions}, totals)


def measure(n_parties: int, rows: Rows, scores: Floats, mechanism: str, repeats: int) -> Measurement:
    """Sum the scores some times, after one sum that is not counted."""
    sessions = open_sessions(n_parties, scores)
    transport, ledger = TimedLoopback(sessions), Ledger()
    conductor = Conductor(transport, codec(), ledger, lambda _phase, _number: None)
    roster: Roster = conductor.play(hello(sessions))
    sum_scores: SumMechanism = SecureSum(RULE, None) if mechanism == "secure" else SumInTheClear(RULE, None)
    seconds, at_parties, weight = [], [], 0
    for _ in range(repeats + 1):
        drawn, position = at_round_three(sessions, rows), len(ledger)
        transport.at_parties, started = 0.0, time.process_time()
        total = conductor.play(sum_scores(roster, drawn))
        seconds.append(time.process_time() - started)
        at_parties.append(transport.at_parties)
        weight = ledger.since(position).bytes
        np.testing.assert_allclose(total, n_parties * scores[rows], rtol=0, atol=1e-6 * scores.min())
    a_party = median(at_parties[1:]) / n_parties
    return Measurement(n_parties, len(rows), mechanism, weight, median(seconds[1:]), a_party)


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="Time secure sums of scores beside plain ones.")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--json", action="store_true", help="print the measurements as JSON")
    options = parser.parse_args()
    rng = np.random.default_rng(0)
    scores = 1 / N_ROWS + np.minimum(rng.pareto(2.0, N_ROWS) * 1e-5, 1.0)
    found = []
    if not options.json:
        print(f"{'T':>3} {'m':>8} {'':8}{'bytes':>14} {'times':>6} {'seconds':>9} {'a party':>9}")
    for n_parties in PARTIES:
        for size in SIZES:
            rows = sendable_rows(np.sort(rng.integers(N_ROWS, size=size)))
            pair = [measure(n_parties, rows, scores, each, options.repeats) for each in ("plain", "secure")]
            found += pair
            for each in pair if not options.json else ():
                times = each.bytes / pair[0].bytes
                print(
                    f"{n_parties:>3} {size:>8,} {each.mechanism:8}{each.bytes:>14,} {times:>6.2f} "
                    f"{each.seconds:>9.4f} {each.seconds_a_party:>9.5f}"
                )
    if options.json:
        print(json.dumps([asdict(each) for each in found], indent=2))
    return 0


if __name__ == "__main__":
    sys.exit(main())
