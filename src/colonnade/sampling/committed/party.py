"""A party's side of committed draws: commits to its scores, contributes to the joint seed, draws by it, opens rows.

Salts are derived from the party's identity and the request that opened the draw, so rows can be opened long after the
run, and after a restart. A contribution is derived from these and from what no other run has: a restart changes nothing
of it, so nobody can be said to have lost one, and whoever repeats a request in another run learns nothing of it.
"""

from dataclasses import dataclass, field, replace

import msgspec
import numpy as np

from colonnade.errors import InputError, LocalProtocolError, PolicyRefusedError
from colonnade.kernels.integer_draws import TOTAL_BITS, even_rows, rows_at, steps_of, stratified_points
from colonnade.ledger import SERVER
from colonnade.messages import Message, sendable_rows
from colonnade.privacy.statements import digest_of_view
from colonnade.privacy.sum_tree import SumTree, depth, pack_openings
from colonnade.protocol import checks
from colonnade.protocol.codec import wire_bytes
from colonnade.protocol.identity import Identity
from colonnade.protocol.memory import CommittedNote
from colonnade.protocol.session import GREETED, Handler, PartyData, PartyState
from colonnade.sampling.committed.joint_seed import (
    contribution_digest,
    draw_key,
    even_key,
    joint_draw_statement,
    joint_key,
)
from colonnade.sampling.committed.messages import (
    AskCommitment,
    AskContribution,
    AskOpenings,
    Commitment,
    CommittedRows,
    Contribution,
    DrawCommitted,
    Openings,
    commitment_of,
    commitment_statement,
)
from colonnade.sampling.plain.party import DRAWN, check_scored
from colonnade.sampling.size import MAX_SIZE
from colonnade.signing import digest

COMMITTED, CONTRIBUTED = "committed", "contributed"
# Nodes of the tree that one reply shows at most: 40 bytes each on the way, and more in memory.
MAX_NODES = 1 << 23


@dataclass(frozen=True)
class CommittedDraw:
    """What a party keeps between its commitment and the draw: its contribution, and the digest of its commitment."""

    contribution: bytes = field(repr=False)  # a secret until all have committed
    commitment: bytes


def _answer_commitment(state: PartyState, request: AskCommitment, data: PartyData) -> tuple[PartyState, Message]:
    if state.has_committed:
        raise checks.wrong(SERVER, request, "a second committed draw in one run: the first counts, however it came out")
    state = check_scored(state, request.rule, data)
    identity, tree = _identity(data), _tree(state, request, data)
    contribution = identity.contribution(wire_bytes(request), state.run_nonce)
    reply = Commitment(tree.root, tree.total, contribution_digest(identity.name, contribution), b"")
    draw = CommittedDraw(contribution, commitment_of(identity.name, reply))
    signed = commitment_statement(identity.name, state.sheet, request, draw.commitment, reply.contribution_digest)
    notes = (*state.notes, CommittedNote(_context(state, request, data)))
    state = replace(
        state, rule=request.rule, rows=None, exchanged=(request,), secret=draw, has_committed=True, notes=notes
    )
    return state, msgspec.structs.replace(reply, signature=identity.sign(signed))


def _answer_contribution(state: PartyState, request: AskContribution, data: PartyData) -> tuple[PartyState, Message]:
    identity = _identity(data)
    parties = identity.parties
    (asked,), draw = state.exchanged, state.secret
    if not isinstance(asked, AskCommitment) or not isinstance(draw, CommittedDraw):
        raise LocalProtocolError("No scores were committed to: ask for a commitment first.")
    if len(request.parties) != len(parties):
        raise checks.wrong(
            SERVER, request, f"{len(request.parties)} commitments, where {', '.join(parties)} were to commit"
        )
    if request.parties[parties.index(identity.name)].commitment != draw.commitment:
        raise checks.wrong(SERVER, request, "another commitment of this party than it made in this run")
    for party, each in zip(parties, request.parties, strict=True):
        statement = commitment_statement(party, state.sheet, asked, each.commitment, each.contribution_digest)
        if not identity.is_signed(party, statement, each.signature):
            raise checks.wrong(SERVER, request, f"a commitment of {party!r} that {party!r} did not sign for this job")
    return replace(state, exchanged=(asked, request), secret=None), Contribution(draw.contribution)


def _answer_draw(state: PartyState, request: DrawCommitted, data: PartyData) -> tuple[PartyState, Message]:
    checks.count(request, request.count, MAX_SIZE)
    checks.count(request, request.n_even, MAX_SIZE)
    identity = _identity(data)
    parties = identity.parties
    opened, told = _exchanged(state)
    if len(request.parties) != len(parties):
        raise checks.wrong(SERVER, request, f"{len(request.parties)} contributions of {len(parties)} parties")
    shown = (request.server, *request.parties)
    digests = (opened.contribution_digest, *(each.contribution_digest for each in told.parties))
    for who, contribution, committed in zip((SERVER, *parties), shown, digests, strict=True):
        if contribution_digest(who, contribution) != committed:
            raise checks.wrong(
                SERVER, request, f"another contribution of {who!r} to the joint seed than was committed to"
            )
    steps = steps_of(data.scores(opened.rule), opened.rule.exponent)
    key = joint_key(request.server, request.parties)
    points = stratified_points(steps.sum(), request.count, draw_key(key, identity.name))
    rows = sendable_rows(rows_at(steps, points))
    even = even_rows(data.table.n_rows, request.n_even, even_key(key), data.table.row_weights)
    reply = CommittedRows(rows, identity.sign(joint_draw_statement(identity.name, state.sheet, key, rows, even)))
    return replace(state, rows=rows, joint_key=key, exchanged=(*state.exchanged, request, reply)), reply


def _answer_openings(state: PartyState, request: AskOpenings, data: PartyData) -> tuple[PartyState, Message]:
    checks.row_ids(SERVER, request, request.rows, data.table.n_rows)
    if np.any(request.rows[1:] == request.rows[:-1]):
        raise checks.wrong(SERVER, request, "a row to open twice")
    if len(request.rows) * depth(data.table.n_rows) > MAX_NODES:
        raise InputError(f"{len(request.rows):,} openings do not fit one message. Open fewer rows.")
    committed = AskCommitment(request.rule, request.contribution_digest)
    if data.policy.known_only and CommittedNote(_context(state, committed, data)) not in data.memory.notes():
        raise PolicyRefusedError(
            "its owner's policy opens only scores that it committed to, and to these it never did.", party=data.name
        )
    tree = _tree(state, committed, data)
    openings = tree.open(request.rows)
    salts, hashes = pack_openings(openings)
    return state, Openings(
        sendable_rows([each.number for each in openings]),
        sendable_rows([below for each in openings for below in each.sums]),
        salts,
        hashes,
    )


def _tree(state: PartyState, request: AskCommitment, data: PartyData) -> SumTree:
    scores = data.scores(request.rule)
    if np.ldexp(scores.sum(), request.rule.exponent) >= 2.0 ** (TOTAL_BITS + 1):
        raise InputError(
            f"its scores in steps of 2^-{request.rule.exponent} do not add up within 64 bits. Ask for larger steps."
        )
    steps = steps_of(scores, request.rule.exponent)
    return SumTree(steps, _identity(data).derived(digest(b"salts", _context(state, request, data))))


def _context(state: PartyState, request: AskCommitment, data: PartyData) -> bytes:
    """Hash what makes this draw different from any other: rule, step, the server's digest, rows that count, units."""
    scaling = "own" if state.view is None else state.view.scaling
    aligned = [] if data.table.alignment is None else [data.table.alignment.fingerprint]
    return digest(b"committed draw", wire_bytes(request), digest_of_view(data.table.row_weights, scaling), *aligned)


def _exchanged(state: PartyState) -> tuple[AskCommitment, AskContribution]:
    opened, told = state.exchanged[:2]
    if not isinstance(opened, AskCommitment) or not isinstance(told, AskContribution):
        raise LocalProtocolError("No scores were committed to: ask for a commitment first.")
    return opened, told


def _identity(data: PartyData) -> Identity:
    if data.identity is None:
        raise InputError(
            "it has no identity, and so no secret to salt a commitment with. "
            'Give the party an identity, or ask for draws="stratified".'
        )
    return data.identity.now()


HANDLERS = (
    Handler(AskCommitment, _answer_commitment, after=None, then=COMMITTED),
    Handler(AskContribution, _answer_contribution, after=frozenset({COMMITTED}), then=CONTRIBUTED),
    Handler(DrawCommitted, _answer_draw, after=frozenset({CONTRIBUTED}), then=DRAWN),
    Handler(AskOpenings, _answer_openings, after=None, then=GREETED),
)
