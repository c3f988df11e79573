"""A party's side of a step: the others give masked parts of a direction, the label party solves and shares a column."""

from dataclasses import replace

import numpy as np

from colonnade.errors import InputError
from colonnade.kernels.arrays import Floats, Rows
from colonnade.kernels.classes import class_codes
from colonnade.kernels.logistic import Separable, log_loss, probabilities, solve_logistic
from colonnade.kernels.logistic_steps import told_of_one_row
from colonnade.kernels.masks import Words
from colonnade.kernels.shares import limb_products, pack_words, packed_size, to_limbs, unpack_words
from colonnade.ledger import SERVER
from colonnade.messages import Message, sendable_floats
from colonnade.privacy.one_solving import require_same_question, seen_rows
from colonnade.privacy.pair_keys import SHARED, identity_of
from colonnade.protocol import checks
from colonnade.protocol.applied import count_applied
from colonnade.protocol.session import Handler, PartyData, PartyState
from colonnade.protocol.sums import HALF
from colonnade.signing import digest
from colonnade.solvers.gram.steps.kept import PARTS, StepsKept, sqrt_weights, steps_kept, with_kept
from colonnade.solvers.gram.steps.messages import AskStepColumn, AskStepPart, StepColumn, StepPart

# Rounding of a direction's length.
SLACK = 1e-9


def _answer_part(state: PartyState, request: AskStepPart, data: PartyData) -> tuple[PartyState, Message]:
    if data.table.label_name is not None:
        raise checks.wrong(SERVER, request, "a direction for the label party, which is to be shown the others' only")
    kept = steps_kept(state, request, request.step)
    if kept is None:
        return state, StepPart(0, b"", b"")
    checks.shape(SERVER, request, request.direction, (kept.directions.shape[1],))
    checks.in_range(SERVER, request, request.direction)
    if np.linalg.norm(request.direction) > 1 + SLACK:
        raise checks.wrong(SERVER, request, "a direction of more than length 1")
    asked = digest(seen_rows(state, data), request.direction.astype("<f8").tobytes())
    state = require_same_question(state, request, asked, 1 + request.step)
    state = count_applied(state, data, digest(b"step", asked))
    to = identity_of(data).parties.index(kept.question.to)
    transcript = kept.step_transcript()
    box = kept.secret.encrypt_for(pack_words(_masked(kept, request.direction, to)), to, kept.keys, transcript)
    block = limb_products(to_limbs(kept.directions, kept.question.low_bits), kept.column_mask())
    hidden = kept.secret.stream(to, kept.keys, transcript, b"block", block.size).reshape(block.shape)
    return with_kept(state, kept), StepPart(len(kept.question.rows), box, pack_words(block + hidden))


def _masked(kept: StepsKept, direction: Floats, to: int) -> Words:
    """Compute our part of the direction, sqrt(w_i) (x_i - mean).d, under masks that cancel in the sum of the others."""
    part = np.rint(np.ldexp(kept.directions @ direction, PARTS.exponent)).astype(np.int64).view(np.uint64)
    for other in kept.circle:
        if other not in (kept.here, to):
            mask = kept.secret.stream(other, kept.keys, kept.step_transcript(), b"part", len(part))
            part = part + mask if kept.here < other else part - mask
    return part


def _answer_column(state: PartyState, request: AskStepColumn, data: PartyData) -> tuple[PartyState, Message]:
    kept = steps_kept(state, request, request.step)
    if kept is None:
        nothing = sendable_floats([])
        return state, StepColumn(nothing, 0.0, 0.0, 0.0, None, b"")
    if data.table.label_name is None:
        raise checks.wrong(SERVER, request, "parts of others for a party that has no label")
    kept = _with_settings(kept, request)
    parts = _sum_of_parts(kept, request, data)
    numbers = np.array([request.unit, request.offset], "<f8").tobytes()
    asked = digest(seen_rows(state, data), parts.tobytes(), numbers, kept.settings)
    state = require_same_question(state, request, asked, 1 + request.step)
    roots = sqrt_weights(kept.question)
    shown = request.unit * parts / np.where(roots > 0, roots, 1.0) + request.offset
    kept = replace(kept, shown=(*kept.shown, shown))
    coef, intercept, codes, logits = _solved(kept, request, data)
    # p - y, of which nothing is lost in rounding where p is nearly y
    signs = np.where(codes == 1, -1.0, 1.0)
    residuals = signs * probabilities(signs * logits)
    weights = kept.question.row_weights()
    kept = replace(
        kept, told=(*(kept.told or _told_before(weights, codes)), weights * residuals), last=(coef, intercept)
    )
    solved = (sendable_floats(coef[0]), float(intercept[0]))
    sums = (float(weights @ log_loss(logits, codes)), float(weights @ residuals))
    if _tells_a_row(kept, data):
        # There is nothing more to be shown for, either.
        kept = replace(kept, done=kept.question.steps - 1)
        return with_kept(state, kept), StepColumn(*solved, *sums, None, b"")
    share, blocks = _shared(kept, roots * residuals / np.sqrt(weights.sum()))
    return with_kept(state, kept), StepColumn(*solved, *sums, share, blocks)


def _with_settings(kept: StepsKept, request: AskStepColumn) -> StepsKept:
    """Check what is to be minimised, which is the same in every step."""
    checks.positive(SERVER, request, request.unit)
    checks.in_range(SERVER, request, np.array([request.offset]))
    checks.non_negative(SERVER, request, np.array([request.penalty]))
    checks.shape(SERVER, request, request.values, (2,))
    checks.in_range(SERVER, request, request.values)
    numbers = np.append(request.values, [request.penalty, request.fit_intercept])
    settings = digest(numbers.astype("<f8").tobytes())
    if kept.done and settings != kept.settings:
        raise checks.wrong(SERVER, request, "another penalty, intercept or classes than in the step before")
    return replace(kept, settings=settings)


def _sum_of_parts(kept: StepsKept, request: AskStepColumn, data: PartyData) -> Floats:
    """Decrypt the others' parts and add them up: masks cancel. Nobody on the way can have changed them."""
    parties, size = identity_of(data).parties, len(kept.question.rows)
    others = [place for place in range(len(parties)) if place != kept.here]
    if len(request.boxes) != len(others):
        raise checks.wrong(SERVER, request, f"parts of other than {len(others)} parties")
    total = np.zeros(size, np.uint64)
    for place, box in zip(others, request.boxes, strict=True):
        text = kept.secret.decrypt_from(parties[place], box, place, kept.keys, kept.step_transcript())
        if len(text) != packed_size(size):
            raise checks.wrong(SERVER, request, f"a part of {len(text)} bytes, of {parties[place]!r}")
        total += unpack_words(text, size)
    return np.ldexp(total.view(np.int64).astype(np.float64), -PARTS.exponent)


def _solved(kept: StepsKept, request: AskStepColumn, data: PartyData) -> tuple[Floats, Floats, Rows, Floats]:
    """Minimise over all directions shown so far and our own columns; give coefficients, classes of rows, and logits."""
    n_features, values = len(data.table.feature_names), data.table.take(kept.question.rows)
    try:
        codes = class_codes(values[:, n_features], request.values)
    except ValueError:
        raise InputError(
            "a label of its rows is none of the two classes of the job. Name the label's classes."
        ) from None
    columns, weights = np.column_stack([*kept.shown, values[:, :n_features]]), kept.question.row_weights()
    if len(np.unique(codes[weights > 0])) < 2:
        raise InputError(
            "its drawn rows are all of one class. Draw more rows, or by scores: ImportanceSampling(size=...)."
        )
    start = None if kept.last is None else (np.insert(kept.last[0], kept.done, 0.0, axis=1), kept.last[1])
    try:
        coef, intercept = solve_logistic(
            columns, codes, weights, 2, request.penalty, 0.0, fit_intercept=request.fit_intercept, start=start
        )
    except Separable as error:
        raise InputError(
            "the classes of these rows are told apart without error, or one of them is in some direction: without a "
            "penalty there is no best model. Give a penalty, for instance l2=1e-4, or more rows."
        ) from error
    return coef, intercept, codes, np.asarray(columns @ coef[0] + intercept[0])


def _told_before(weights: Floats, codes: Rows) -> tuple[Floats, Floats]:
    """Give the weights of what the Gram matrix tells of single columns: means, and products with the label."""
    return weights, weights * codes


def _tells_a_row(kept: StepsKept, data: PartyData) -> bool:
    """Tell whether the sums of this run, with this step's, added and subtracted, would tell most of some row."""
    if data.policy.least_rows == 1:
        return False
    return told_of_one_row(np.column_stack(kept.told), kept.question.rows) > HALF


def _shared(kept: StepsKept, column: Floats) -> tuple[bytes, bytes]:
    """Share a column of norm 1 at most, shape (m,); for each other party our term of its products with it, masked."""
    transcript = kept.step_transcript()
    share = to_limbs(column[:, None], kept.question.low_bits) - kept.column_mask()
    blocks = []
    for other in range(len(kept.keys)):
        if other != kept.here:
            block = limb_products(kept.matrix_mask(other), share)
            hidden = kept.secret.stream(other, kept.keys, transcript, b"block", block.size).reshape(block.shape)
            blocks.append(pack_words(block - hidden))
    return pack_words(share), b"".join(blocks)


HANDLERS = (
    Handler(AskStepPart, _answer_part, after=frozenset({SHARED}), then=SHARED, solver="gram"),
    Handler(AskStepColumn, _answer_column, after=frozenset({SHARED}), then=SHARED, solver="gram"),
)
