"""The wire format, frozen: a change here breaks parties that run another version. Raise WIRE_VERSION with it."""

from pathlib import Path

import numpy as np
import pytest

from colonnade.alignment.aided import AskPseudonyms, Pseudonyms
from colonnade.alignment.clear import AskKeys, KeysInClear
from colonnade.alignment.curve import AskPoints, MultiplyPoints, Points
from colonnade.alignment.meeting import AskKeyCard, KeyCard
from colonnade.alignment.settling import AlignmentKept, KeepAlignment, Matched, TellMatches
from colonnade.alignment.shared_secret import (
    AskShareKey,
    DealSecret,
    DealtSecret,
    OpenSecret,
    SecretOpened,
    ShareKey,
)
from colonnade.catalogue import codec, kinds
from colonnade.diagnostics.audited_distances import AskAuditedDistances, AuditedDistances
from colonnade.diagnostics.audited_logits import AskAuditedLogits, AuditedLogits
from colonnade.diagnostics.audited_predictions import AskAuditedPredictions, AuditedPredictions
from colonnade.diagnostics.moved_distances import AskMovedDistances, MovedDistances
from colonnade.diagnostics.pair_distances import AskPairDistances, PairDistances
from colonnade.diagnostics.row_distances import AskRowDistances, RowDistances
from colonnade.diagnostics.whitened_rows import AskWhitenedClassRows, AskWhitenedRows, WhitenedRows
from colonnade.evaluation.classes.messages import (
    AskClassLosses,
    AskMaskedClassLosses,
    BringMaskedClasses,
    ClassLosses,
    DeliverClasses,
    DeliverMaskedClasses,
    MaskedClassLosses,
)
from colonnade.evaluation.clustering import AskPartialDistances, AskRoundedDistances, PartialDistances
from colonnade.evaluation.delivery import Deliver, Received
from colonnade.evaluation.linear import AskPartialPredictions, AskRoundedPredictions, PartialPredictions
from colonnade.evaluation.masked.messages import (
    AskLosses,
    AskMagnitude,
    AskMaskedPredictions,
    BringMasked,
    DeliverMasked,
    Magnitude,
    MaskedPredictions,
    MaskedReceived,
    SignedPart,
    SummedLosses,
)
from colonnade.evaluation.rounding import RoundedParts
from colonnade.evaluation.telling import ModelKept, TellClassModel, TellModel
from colonnade.kernels.arrays import Floats
from colonnade.kernels.column_codes import encode_columns
from colonnade.kernels.fixed_codes import encode_fixed
from colonnade.kernels.quantise import encode_codes
from colonnade.kernels.score_codes import encode_scores
from colonnade.messages import Message, sendable_flags, sendable_floats, sendable_rows
from colonnade.privacy.pair_keys import AskPairAgreement, AskPairKey, PairAgreement, PairKey
from colonnade.privacy.statements import CircleKeys, KeySignature, SignedDigest, SignedKey
from colonnade.protocol.caps import Branches
from colonnade.protocol.classes import AskClasses, Classes
from colonnade.protocol.hello import WIRE_VERSION, Card, Hello
from colonnade.protocol.preparing import PrepareColumns, PreparedColumns
from colonnade.protocol.refusal import Refused
from colonnade.protocol.sheet import JobAccepted, OpenJob, SheetParty, TakeBranch
from colonnade.protocol.splits import HoldOut, SplitBy
from colonnade.protocol.viewing import (
    AskRowWeights,
    AskSplit,
    BringColumns,
    Moments,
    RowWeights,
    Split,
    UseFrame,
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
    PartyCommitment,
)
from colonnade.sampling.distinct.messages import AskDistinctCodes, AskDistinctScores, DistinctCodes, DistinctScores
from colonnade.sampling.plain.messages import (
    AskScoreCodes,
    AskScores,
    AskTotal,
    AskVouched,
    DrawnRows,
    DrawRows,
    Draws,
    OpenDraw,
    ScoreCodes,
    Scores,
    Total,
    Vouched,
)
from colonnade.sampling.rules.classes import ClassScores
from colonnade.sampling.rules.clustering import ClusteringScores
from colonnade.sampling.rules.filled import FilledScores
from colonnade.sampling.rules.integers import IntegerScores
from colonnade.sampling.rules.leverage import LeverageScores
from colonnade.sampling.rules.rounded import RoundedScores
from colonnade.sampling.rules.sharpened import SharpenedScores
from colonnade.sampling.secure.messages import (
    Agreement,
    AskAgreement,
    AskMaskedLogs,
    AskMaskedScores,
    AskPublicKey,
    MaskedScores,
    PublicKey,
)
from colonnade.sampling.selecting import Ready, UseAllRows, UseRows, UseSharedDraw
from colonnade.signing import SignedMarks, SignedRows, SignedWeights, VouchedRows
from colonnade.solvers.central import AskColumns, AskColumnWindow, Columns
from colonnade.solvers.distdim import AskLocalClusters, LocalClusters
from colonnade.solvers.finer_rows import AskFinerClassRows, AskFinerRows, FinerRows
from colonnade.solvers.gram.ckks.messages import (
    AskDecryptedProducts,
    AskEncryptedProducts,
    AskEncryptedRows,
    DecryptedProducts,
    EncryptedProducts,
    EncryptedRows,
)
from colonnade.solvers.gram.shares.messages import (
    AskGramShares,
    AskSealedSeeds,
    AskStepShares,
    GramShares,
    SealedSeeds,
)
from colonnade.solvers.gram.steps.messages import AskStepColumn, AskStepPart, StepColumn, StepPart
from colonnade.solvers.gram.windows.messages import (
    AskGramBlocks,
    AskGramWindows,
    AskWindowShare,
    WindowShare,
    WindowsOpened,
)
from colonnade.solvers.lloyd.messages import (
    AskLloydCenters,
    LloydCenters,
    LloydOpened,
    MaskedDistances,
    MoveCenters,
    OpenLloyd,
    TryCenters,
)
from colonnade.solvers.saga.coded import AskCodedProgress, CodedProducts, CodedStep
from colonnade.solvers.saga.messages import (
    AskCoefficients,
    AskProgress,
    ClassNorms,
    Coefficients,
    OpenClassSaga,
    OpenSaga,
    PartialProducts,
    Progress,
    SagaStep,
    SquaredNorms,
)
from colonnade.solvers.scaled_columns import AskScaledColumns, ScaledColumns
from colonnade.solvers.whitened_columns import AskClassColumns, AskWhitenedColumns, WhitenedColumns

GOLDEN = Path(__file__).with_name(f"wire_v{WIRE_VERSION}.txt")


def scaled() -> tuple[Floats, bytes]:
    """Make a column of each form: one value, two, rarely another, any."""
    i = np.arange(8.0)
    columns = np.column_stack([i * 0 + 7, i % 2, np.where(i == 3, 2.5, 1.0) + (i == 5), i**1.5])
    levels, code = encode_columns(columns, np.zeros(4), 0.125, np.random.default_rng(0))
    return sendable_floats(levels), code


RELAYED = CircleKeys(bytes(32), (KeySignature(bytes(32), bytes(64)),))
EXAMPLES: dict[str, Message] = {
    "hello": Hello(2),
    "card": Card(
        2, 1000, ("distance", "hour"), "arr_delay", bytes(range(32)), has_weights=True, has_split=False, prepares=False
    ),
    "card without label": Card(2, 2**40, (), None, None, has_weights=False, has_split=True, prepares=True),
    "card, label of text": Card(
        2, 9, ("x",), "late", None, has_weights=False, has_split=False, prepares=False, label_is_text=True
    ),
    "ask classes": AskClasses(2000),
    "classes": Classes(sendable_floats([0.0, 1.0]), None, None),
    "classes, text": Classes(sendable_floats([0.0, 1.0]), ("no", "yes"), 2000),
    "prepare columns": PrepareColumns(),
    "prepared columns": PreparedColumns("00" * 16, ("age", "job#1"), None),
    "prepared columns, with levels": PreparedColumns("00" * 16, ("age", "job#1"), ("age", "job=clerk")),
    "refused": Refused("policy", "no."),
    "refused, with what would do": Refused("policy", "no.", Branches(("compact",), 40, 500, evenly=True)),
    "open job": OpenJob(b"sheet", bytes(64)),
    "job accepted": JobAccepted(bytes(16), bytes(16)),
    "job accepted, by a branch": JobAccepted(bytes(16), None),
    "take branch": TakeBranch(b"choice"),
    "tell model": TellModel(sendable_floats([0.5, -1.0]), None, None),
    "tell model, centres": TellModel(None, sendable_floats([[0.5, -1.0]]), sendable_floats([2.0, 1.0])),
    "tell class model": TellClassModel(sendable_floats([[0.5, -1.0], [0.0, 2.0], [-0.5, -1.0]])),
    "model kept": ModelKept(bytes(32)),
    "ask total, regression": AskTotal(LeverageScores(fit_intercept=True)),
    "ask total, clustering": AskTotal(ClusteringScores(10)),
    "ask total, classes": AskTotal(ClassScores(fit_intercept=True, n_columns=23)),
    "ask total, rounded": AskTotal(RoundedScores(ClusteringScores(10), 0.2)),
    "ask total, sharpened": AskTotal(RoundedScores(SharpenedScores(fit_intercept=True, residuals=5.25), 0.2)),
    "total": Total(31.5),
    "draw rows": DrawRows(400, seed=2**63 - 1, draws=Draws.STRATIFIED),
    "draw rows, distinct": DrawRows(400, seed=5, draws=Draws.DISTINCT),
    "drawn rows": DrawnRows(sendable_rows([0, 7, 7, 2**40]), bytes(64)),
    "ask scores": AskScores(2, (), 0.0, 5),
    "ask scores, others": AskScores(6, (SignedRows("bank", sendable_rows([3, 3, 900]), bytes(64)),), 0.25, 2**63 - 1),
    "ask scores, vouched": AskScores(3, VouchedRows(sendable_rows([3, 2007, 2007]), bytes(64)), 0.0, 5),
    "ask vouched": AskVouched((SignedRows("bank", sendable_rows([3, 3, 900]), bytes(64)),)),
    "vouched": Vouched(bytes(64)),
    "scores": Scores(sendable_floats([0.25, -0.0, np.inf])),
    "ask public key": AskPublicKey(),
    "public key": PublicKey(bytes(32), bytes(range(32)), bytes(32), bytes(64)),
    "ask masked scores": AskMaskedScores(
        *(2, (SignedRows("bank", sendable_rows([3, 3]), bytes(64)),), 0.0, 5),
        *(6, 41, CircleKeys(bytes(64), (KeySignature(bytes(32), bytes(64)), KeySignature(b"e", b"s")))),
    ),
    "ask masked logs": AskMaskedLogs(
        *(2, (SignedRows("bank", sendable_rows([3, 4]), bytes(64)),), 0.0, 5, 3, 1.5),
        *(8, 41, CircleKeys(bytes(64), (KeySignature(bytes(32), bytes(64)), KeySignature(b"e", b"s")))),
    ),
    "masked scores": MaskedScores(bytes(range(12)), 6, bytes(32), bytes(64)),
    "masked scores, key lost": MaskedScores(None, 6, bytes(32), b""),
    "ask agreement": AskAgreement((SignedDigest(bytes(32), bytes(64)),)),
    "agreement": Agreement(bytes(32)),
    "ask score codes": AskScoreCodes(3, (SignedRows("bank", sendable_rows([5, 8]), bytes(64)),), 0.5, 5),
    "score codes": ScoreCodes(3, encode_scores(np.array([0.5, 0.0, 2.0]))),
    "ask distinct scores": AskDistinctScores(
        2, (SignedRows("bank", sendable_rows([3, 900]), bytes(64)),), 0.25, 5, n_draws=3
    ),
    "distinct scores": DistinctScores(sendable_floats([0.25, 0.5]), 1.5),
    "ask distinct codes": AskDistinctCodes(2, (), 0.25, 5, n_draws=3),
    "distinct codes": DistinctCodes(3, encode_scores(np.array([0.5, 0.0, 2.0])), 1.5),
    "ask total, filled": AskTotal(FilledScores(ClusteringScores(10))),
    "open draw, scored before": OpenDraw(None, 3, seed=5, draws=Draws.DISTINCT),
    "open draw": OpenDraw(FilledScores(LeverageScores(fit_intercept=True)), 400, seed=5, draws=Draws.STRATIFIED),
    "ask commitment": AskCommitment(IntegerScores(LeverageScores(fit_intercept=True), 57), bytes(range(32))),
    "commitment": Commitment(bytes(32), 2**61, bytes(range(32)), bytes(64)),
    "ask contribution": AskContribution((PartyCommitment(bytes(32), bytes(range(32)), bytes(64)),)),
    "contribution": Contribution(bytes(range(32))),
    "draw committed": DrawCommitted(400, 20, bytes(32), (bytes(range(32)), b"c")),
    "committed rows": CommittedRows(sendable_rows([0, 7, 7]), bytes(64)),
    "ask openings": AskOpenings(
        IntegerScores(FilledScores(ClusteringScores(10)), 57), bytes(range(32)), sendable_rows([3, 900])
    ),
    "openings": Openings(sendable_rows([2**50]), sendable_rows([2**51, 0]), bytes(16), bytes(64)),
    "score codes, coarse": ScoreCodes(3, encode_scores(np.array([1.0, 0.0, np.exp(-1.2)]), 0.2)),
    "use shared draw": UseSharedDraw(10, seed=5, distinct=True),
    "use all rows": UseAllRows(),
    "use rows": UseRows(sendable_rows([1])),
    "use rows, all the same": UseRows(sendable_rows([5] * 9)),
    "ready": Ready(),
    "ask columns": AskColumns(with_label=True),
    "ask column window": AskColumnWindow(with_label=True, first=0, stop=16384, n_columns=11),
    "columns": Columns(sendable_floats(np.arange(6.0).reshape(3, 2)), sendable_floats([1.0, 2.0, 3.0])),
    "columns without label": Columns(sendable_floats(np.empty((2, 0))), None),
    "ask whitened columns": AskWhitenedColumns(0.5, seed=5),
    "ask whitened columns, within": AskWhitenedColumns(0.5, seed=5, most=3000),
    "ask class columns": AskClassColumns(0.5, seed=5),
    "ask whitened columns, known": AskWhitenedColumns(0.5, seed=5, known=True),
    "whitened columns": WhitenedColumns(
        3,
        0.5,
        2,
        sendable_floats([1.0]),
        sendable_floats([2.0, -1.0, 0.5]),
        4.0,
        encode_codes(np.array([[0, -1, 3], [9, 2, 0]])),
    ),
    "whitened columns without label": WhitenedColumns(2, 0.5, 0, sendable_floats([]), sendable_floats([]), None, b""),
    "whitened columns, known": WhitenedColumns(
        3, 0.625, 2, None, None, 4.0, encode_codes(np.array([[0, -1, 3], [9, 2, 0]]))
    ),
    "ask scaled columns": AskScaledColumns(0.25, seed=2**63 - 1),
    "ask scaled columns, within": AskScaledColumns(0.25, seed=5, most=1),
    "scaled columns": ScaledColumns(8, 4, 0.125, *scaled()),
    "ask finer rows": AskFinerRows(0.25, 5, 1 / 256, 2**63 - 1, sendable_rows([0, 3, 7])),
    "ask finer class rows": AskFinerClassRows(0.25, 5, 1 / 256, 6, sendable_rows([0, 2])),
    "finer rows": FinerRows(3, 2, 1, encode_codes(np.array([[0, 1, -1], [2, 0, 31]]))),
    "ask local clusters": AskLocalClusters(10, seed=2**63 - 1, weights=sendable_floats([0.5, 1.0])),
    "ask local clusters, equal weights": AskLocalClusters(10, seed=5, weights=None),
    "local clusters": LocalClusters(sendable_floats([[1.0, 2.0], [0.5, 0.0]]), sendable_rows([0, 1, 1])),
    "local clusters, packed": LocalClusters(sendable_floats([[1.0], [0.5], [2.0]]), sendable_rows([2, 0, 1, 1, 2])),
    "ask partial predictions": AskPartialPredictions(
        sendable_floats([0.5, -1.0]), less_label=True, by_weight=False, first=0, stop=262144
    ),
    "partial predictions": PartialPredictions(sendable_floats([2.5]), None),
    "partial predictions less label": PartialPredictions(sendable_floats([2.5]), 9.0),
    "ask partial distances": AskPartialDistances(sendable_floats([[1.0, 2.0]]), None, first=0, stop=9),
    "ask partial distances, standardised": AskPartialDistances(
        sendable_floats([[1.0, 2.0]]), sendable_floats([3.0, 0.5]), first=262144, stop=262145
    ),
    "partial distances": PartialDistances(sendable_floats([[4.0], [0.0]])),
    "ask rounded predictions": AskRoundedPredictions(
        sendable_floats([0.5, -1.0]), less_label=True, by_weight=False, bits=16, seed=2**63 - 1, first=0, stop=3
    ),
    "ask rounded distances": AskRoundedDistances(sendable_floats([[1.0, 2.0]]), None, bits=8, seed=5, first=0, stop=3),
    "rounded parts": RoundedParts(
        3,
        sendable_floats([2.5, -1.0]),
        encode_fixed(np.array([1.5, -0.25, 0.0, 3.0, -3.0, 1e-3]), 12, np.random.default_rng(5)),
        None,
    ),
    "rounded parts less label": RoundedParts(2, sendable_floats([4.0]), encode_fixed(np.zeros(2), 16), 9.0),
    "deliver": Deliver(sendable_floats([1.5]), None, 0, 1),
    "deliver clusters": Deliver(None, sendable_rows([3]), 16_384, 16_385),
    "received": Received(),
    "ask split": AskSplit(0, 2),
    "split": Split(sendable_flags([True, False, False, True, False, False, False, False, True]), bytes(64)),
    "ask row weights": AskRowWeights(262144, 262146),
    "bring columns": BringColumns(None, SignedWeights("bank", sendable_floats([1.0, 2.0]), bytes(64)), 0, 2),
    "row weights": RowWeights(sendable_floats([1.0, 0.0]), bytes(64)),
    "use frame, fraction": UseFrame("train", "standard", HoldOut(0.25, seed=7), None, None),
    "use frame, column": UseFrame(
        *("test", "own", SplitBy("airline")),
        SignedMarks("airline", sendable_flags([True, False]), bytes(64)),
        SignedWeights("bank", sendable_floats([1.0, 2.0]), bytes(64)),
    ),
    "moments": Moments(sendable_floats([0.5]), sendable_floats([2.0])),
    "open saga": OpenSaga(75, seed=5, l2=0.5, l1=0.0, fit_intercept=True, scale=False),
    "open class saga": OpenClassSaga(75, 5, 0.5, 0.0, True, False, sendable_floats([0.0, 1.0])),
    "class norms": ClassNorms(sendable_floats([4.0, 0.25]), None),
    "class norms, with labels": ClassNorms(sendable_floats([4.0, 0.25]), sendable_floats([0.0, 1.0])),
    "squared norms": SquaredNorms(sendable_floats([4.0, 0.25])),
    "saga step, first": SagaStep(sendable_floats([]), 300, 0.125),
    "saga step": SagaStep(sendable_floats([-1.5]), 0, None),
    "partial products": PartialProducts(sendable_floats([2.5]), None),
    "partial products less label": PartialProducts(None, sendable_floats([-2.5])),
    "ask progress": AskProgress(sendable_floats([0.5])),
    "progress": Progress(0.25, 9.0),
    "coded step, first": CodedStep(0, encode_fixed(np.empty(0), 16), 16, 300, 0.125),
    "coded step": CodedStep(2, encode_fixed(np.array([-1.5, 1e100]), 16), 16, 0, None),
    "coded products": CodedProducts(3, encode_fixed(np.array([0.1, -0.2, 0.3]), 8), None),
    "coded products less label": CodedProducts(1, None, encode_fixed(np.array([-1e-100]), 32)),
    "ask coded progress": AskCodedProgress(1, encode_fixed(np.array([0.5]), 4), 4),
    "ask coefficients": AskCoefficients(),
    "coefficients": Coefficients(sendable_floats([1.0, -2.0]), 3.0),
    "ask whitened rows": AskWhitenedRows(fit_intercept=True),
    "ask whitened class rows": AskWhitenedClassRows(fit_intercept=True),
    "whitened rows": WhitenedRows(sendable_floats([[0.5, -0.25]]), None),
    "whitened rows with label": WhitenedRows(sendable_floats(np.empty((1, 0))), sendable_floats([0.125])),
    "ask pair distances": AskPairDistances(300, seed=5),
    "pair distances": PairDistances(sendable_floats([0.0, 9.0])),
    "ask row distances": AskRowDistances(10, seed=5),
    "row distances": RowDistances(sendable_floats([[4.0, 0.0]])),
    "ask moved distances": AskMovedDistances(sendable_floats([[1.0, 2.0]]), None, seed=5),
    "ask moved distances, standardised": AskMovedDistances(
        sendable_floats([[1.0, 2.0]]), sendable_floats([0.5, 4.0]), seed=5
    ),
    "moved distances": MovedDistances(sendable_floats([[4.0, 4.0, 4.0]])),
    "ask pair key": AskPairKey(),
    "pair key": PairKey(bytes(range(32)), bytes(32), bytes(32), bytes(64)),
    "ask pair agreement": AskPairAgreement((SignedDigest(bytes(32), bytes(64)),)),
    "pair agreement": PairAgreement(bytes(32)),
    "ask sealed seeds": AskSealedSeeds(RELAYED),
    "sealed seeds": SealedSeeds((bytes(48), bytes(range(48)))),
    "sealed seeds, key lost": SealedSeeds(()),
    "ask gram shares": AskGramShares(sendable_floats([0.5, 1.0]), 2**63 - 1, (3, 1), RELAYED, bytes(48)),
    "ask gram shares, all alike": AskGramShares(None, None, (3, 1), RELAYED, bytes(48)),
    "ask step shares": AskStepShares(sendable_floats([0.5, 1.0]), (3, 1), 12, "bank", RELAYED, bytes(48)),
    "ask step part": AskStepPart(2, sendable_floats([0.5, -0.25])),
    "step part": StepPart(2, bytes(range(32)), bytes(32)),
    "step part, key lost": StepPart(0, b"", b""),
    "ask step column": AskStepColumn(2, (bytes(range(32)),), 0.5, 0.0, 1e-3, True, sendable_floats([0.0, 1.0])),
    "step column": StepColumn(sendable_floats([1.0, -2.0]), 0.5, 3.0, 0.0, bytes(range(32)), bytes(32)),
    "step column, no further step": StepColumn(sendable_floats([1.0, -2.0]), 0.5, 3.0, 0.0, None, b""),
    "gram shares": GramShares(
        sendable_floats([[1.0]]), sendable_floats([[2.0]]), bytes(range(16)), bytes(16), bytes(32), bytes(64)
    ),
    "gram shares, key lost": GramShares(
        sendable_floats(np.empty((0, 0))), sendable_floats(np.empty((0, 0))), None, b"", bytes(32), b""
    ),
    "ask gram windows": AskGramWindows((3, 1), RELAYED, bytes(48)),
    "windows opened": WindowsOpened(has_key=True),
    "ask window share": AskWindowShare(first=16384, stop=32768, n_columns=4),
    "window share": WindowShare(bytes(range(16))),
    "window share, key lost": WindowShare(None),
    "ask gram blocks": AskGramBlocks(),
    "ask magnitude": AskMagnitude(sendable_floats([0.5]), None, None, evaluating=True),
    "ask magnitude, centres": AskMagnitude(None, sendable_floats([[0.5]]), sendable_floats([2.0]), evaluating=False),
    "magnitude": Magnitude(-3),
    "ask masked predictions": AskMaskedPredictions(
        sendable_floats([0.5]), None, None, True, False, 7, "bank", RELAYED, 0, 2
    ),
    "masked predictions": MaskedPredictions(bytes(range(14)), None, bytes(32), bytes(64)),
    "masked predictions, less labels": MaskedPredictions(bytes(range(14)), 2.5, bytes(32), bytes(64)),
    "masked predictions, key lost": MaskedPredictions(None, None, bytes(32), b""),
    "deliver masked": DeliverMasked((SignedPart(bytes(range(14)), bytes(32), bytes(64)),), 2.5, 0, 2),
    "bring masked": BringMasked((SignedPart(bytes(range(14)), bytes(32), bytes(64)),), 2.5, 16_384, 16_386),
    "masked received": MaskedReceived(bytes(32)),
    "ask losses": AskLosses((SignedPart(bytes(range(14)), bytes(32), bytes(64)),), 2.5, 0, 2),
    "summed losses": SummedLosses(sendable_floats([2.5, 0.5, 0.0]), sendable_rows([1, 3]), bytes(64)),
    "deliver classes": DeliverClasses(
        sendable_floats([[0.25, 0.75]]), sendable_floats([0.0, 1.0]), ("no", "yes"), 0, 1
    ),
    "ask class losses": AskClassLosses(
        sendable_floats([0.5]),
        sendable_floats([2.5]),
        sendable_floats([-1.0]),
        sendable_floats([2.0, 5.5]),
        None,
        True,
        first=0,
        stop=1,
    ),
    "class losses": ClassLosses(
        sendable_floats([0.5, 0.0, 0.25]),
        sendable_floats([[1.0, 0.0], [2.0, 3.0]]),
        sendable_floats([[0.75, 0.01]]),
        sendable_floats([[6.0, 0.5, 0.25]]),
    ),
    "bring masked classes": BringMaskedClasses(
        (SignedPart(bytes(range(14)), bytes(32), bytes(64)),),
        sendable_floats([2.5]),
        sendable_floats([0.0, 1.0]),
        ("no", "yes"),
        16_384,
        16_386,
    ),
    "deliver masked classes": DeliverMaskedClasses(
        (SignedPart(bytes(range(14)), bytes(32), bytes(64)),),
        sendable_floats([2.5]),
        sendable_floats([0.0, 1.0]),
        ("no", "yes"),
        0,
        2,
    ),
    "ask masked class losses": AskMaskedClassLosses(
        (SignedPart(bytes(range(14)), bytes(32), bytes(64)),),
        sendable_floats([2.5]),
        sendable_floats([2.0, 5.5]),
        None,
        0,
        2,
    ),
    "masked class losses": MaskedClassLosses(
        sendable_floats([0.5, 0.0, 0.25]),
        sendable_floats([[1.0, 0.0], [2.0, 3.0]]),
        sendable_floats([[0.75, 0.01]]),
        sendable_floats([]).reshape(0, 3),
        bytes(64),
    ),
    "open lloyd": OpenLloyd(sendable_floats([0.5, 1.0]), 10, 3, 7, RELAYED),
    "lloyd opened": LloydOpened(5),
    "lloyd opened, key lost": LloydOpened(None),
    "try centers": TryCenters(sendable_rows([3, 0]), 5),
    "move centers": MoveCenters(sendable_rows([0, 1, 0]), None),
    "move centers, first": MoveCenters(sendable_rows([0, 1, 0]), sendable_rows([2, 1])),
    "masked distances": MaskedDistances(bytes(range(12)), 2),
    "masked distances, key lost": MaskedDistances(None, 2),
    "ask lloyd centers": AskLloydCenters(),
    "lloyd centers, key lost": LloydCenters(None, None, bytes(32), b""),
    "lloyd centers": LloydCenters(sendable_floats([[1.0, 2.0]]), sendable_floats([[3.0, 4.0]]), bytes(32), bytes(64)),
    "ask encrypted rows": AskEncryptedRows(None, (3, 1), RELAYED),
    "encrypted rows": EncryptedRows(sendable_floats([0.5]), sendable_floats([[2.0]]), (b"c1", b"c2"), bytes(64)),
    "ask encrypted products": AskEncryptedProducts(((b"c1", b"c2"), ()), (bytes(64), bytes(64))),
    "encrypted products": EncryptedProducts(((b"p1",),), sendable_floats([3.5]), (bytes(64),), has_key=True),
    "ask decrypted products": AskDecryptedProducts(((b"p1",),), (bytes(64),)),
    "decrypted products": DecryptedProducts(sendable_floats([4.5]), bytes(32), bytes(64)),
    "ask audited predictions": AskAuditedPredictions(
        sendable_floats([0.5, -1.0]), sendable_floats([[1.0, 0.0]]), seed=2**63 - 1
    ),
    "audited predictions": AuditedPredictions(
        2, sendable_floats([-1.0]), sendable_floats([0.25]), bytes([0, 0, 232, 253]), None, 0.5, 4.0
    ),
    "ask audited logits": AskAuditedLogits(sendable_floats([0.5]), sendable_floats(np.empty((0, 1))), seed=7),
    "audited logits": AuditedLogits(
        2, sendable_floats([-1.0]), sendable_floats([0.25]), bytes(4), 0.5, 4.0, None, None, None
    ),
    "audited logits, classes": AuditedLogits(
        2, sendable_floats([-1.0]), sendable_floats([0.25]), bytes(4), 0.5, 4.0, bytes([128]), 0.25, 1.5
    ),
    "ask audited distances": AskAuditedDistances(sendable_floats([[1.0, 2.0]]), None),
    "audited distances": AuditedDistances(2, 1, 9.0, bytes([0, 0, 255, 255])),
    "ask key card": AskKeyCard(again=True),
    "key card": KeyCard(SheetParty("bank", 3, True, False, False), 10, 9, bytes(16), "curve"),
    "key card, not aligned": KeyCard(SheetParty("shop", 2, False, True, True), 10, 10, None, None),
    "ask share key": AskShareKey(),
    "share key": ShareKey(bytes(32), bytes(64)),
    "deal secret": DealSecret((SignedKey(bytes(32), b"", bytes(64)),)),
    "dealt secret": DealtSecret((bytes(80),)),
    "dealt secret, not the dealer": DealtSecret(()),
    "open secret": OpenSecret(bytes(80)),
    "secret opened": SecretOpened(),
    "ask keys": AskKeys(131072),
    "keys in clear": KeysInClear(sendable_rows([2, 1]), b"0a7"),
    "ask pseudonyms": AskPseudonyms(0),
    "pseudonyms": Pseudonyms(bytes(range(32))),
    "ask points": AskPoints(0),
    "points": Points(bytes(range(32)), bytes(64)),
    "multiply points": MultiplyPoints("bank", 1, 131072, bytes(range(32)), bytes(64)),
    "tell matches": TellMatches(sendable_flags([True, False, True])),
    "matched": Matched(bytes(32), bytes(64)),
    "keep alignment": KeepAlignment((SignedDigest(bytes(32), bytes(64)),)),
    "alignment kept": AlignmentKept(bytes(16)),
}


def golden() -> dict[str, str]:
    lines = GOLDEN.read_text().splitlines()
    return dict(line.rsplit(": ", 1) for line in lines)


def test_every_kind_is_frozen() -> None:
    assert {type(message) for message in EXAMPLES.values()} == kinds()
    assert golden().keys() == EXAMPLES.keys()


@pytest.mark.parametrize("name", EXAMPLES)
def test_bytes_are_the_golden_ones(name: str) -> None:
    assert codec().encode(EXAMPLES[name]).hex() == golden()[name]


@pytest.mark.parametrize("name", EXAMPLES)
def test_golden_bytes_decode(name: str) -> None:
    data = bytes.fromhex(golden()[name])
    assert codec().encode(codec().decode(data)) == data
