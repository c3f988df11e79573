"""Hypothesis strategies for every kind of message; a new kind without one fails a test."""

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from colonnade.diagnostics.audited_distances import AskAuditedDistances, AuditedDistances
from colonnade.diagnostics.audited_predictions import AskAuditedPredictions, AuditedPredictions
from colonnade.diagnostics.pair_distances import AskPairDistances, PairDistances
from colonnade.diagnostics.row_distances import AskRowDistances, RowDistances
from colonnade.diagnostics.whitened_rows import AskWhitenedRows, WhitenedRows
from colonnade.evaluation.clustering import AskPartialDistances, AskRoundedDistances, PartialDistances
from colonnade.evaluation.delivery import Deliver, Received
from colonnade.evaluation.linear import AskPartialPredictions, AskRoundedPredictions, PartialPredictions
from colonnade.evaluation.masked import (
    AskMagnitude,
    AskMaskedPredictions,
    Magnitude,
    MaskedPredictions,
    SealedPart,
)
from colonnade.evaluation.masked_delivery import DeliverMasked, MaskedReceived
from colonnade.evaluation.masked_losses import AskLosses, SummedLosses
from colonnade.evaluation.rounding import RoundedParts
from colonnade.messages import Message, sendable_flags, sendable_floats, sendable_rows
from colonnade.privacy.pair_keys import AskPairAgreement, AskPairKey, PairAgreement, PairKey
from colonnade.privacy.pairwise import Seal, SignedKey
from colonnade.protocol.framing import AskRowWeights, AskSplit, Moments, RowWeights, Split, UseFrame
from colonnade.protocol.hello import Card, Hello
from colonnade.protocol.refusal import Refused
from colonnade.protocol.splits import HoldOut, SplitBy
from colonnade.sampling.clustering import ClusteringScores
from colonnade.sampling.committed import (
    AskCommitment,
    AskContribution,
    Commitment,
    Committed,
    Contribution,
    DrawCommitted,
)
from colonnade.sampling.drawing import AskTotal, DrawnRows, DrawRows, OpenDraw, Total
from colonnade.sampling.filled import FilledScores
from colonnade.sampling.integers import IntegerScores
from colonnade.sampling.leverage import LeverageScores
from colonnade.sampling.opening import AskOpenings, Openings
from colonnade.sampling.rounded import AskScoreCodes, CoarseScores, RoundedScores, ScoreCodes
from colonnade.sampling.secure_summing import (
    Agreement,
    AskAgreement,
    AskMaskedScores,
    AskPublicKey,
    MaskedScores,
    PublicKey,
)
from colonnade.sampling.shared import Ready, UseAllRows, UseRows, UseSharedDraw
from colonnade.sampling.summing import AskScores, Scores
from colonnade.solvers.central import AskColumns, Columns
from colonnade.solvers.distdim import AskLocalClusters, LocalClusters
from colonnade.solvers.gram_by_ckks import (
    AskDecryptedProducts,
    AskEncryptedProducts,
    AskEncryptedRows,
    DecryptedProducts,
    EncryptedProducts,
    EncryptedRows,
)
from colonnade.solvers.gram_by_shares import AskGramShares, AskSealedSeeds, GramShares, SealedSeeds
from colonnade.solvers.lloyd_rounds import (
    AskLloydCenters,
    LloydCenters,
    LloydOpened,
    MaskedDistances,
    MoveCenters,
    OpenLloyd,
    TryCenters,
)
from colonnade.solvers.saga_coded import AskCodedProgress, CodedProducts, CodedStep
from colonnade.solvers.saga_messages import (
    AskCoefficients,
    AskProgress,
    Coefficients,
    OpenSaga,
    PartialProducts,
    Progress,
    SagaStep,
    SquaredNorms,
)
from colonnade.solvers.scaled_columns import AskScaledColumns, ScaledColumns
from colonnade.solvers.whitened_columns import AskWhitenedColumns, WhitenedColumns

counts = st.integers(0, 2**40)
seeds = st.integers(0, 2**63 - 1)
any_ints = hnp.arrays("int64", st.integers(0, 20))
row_ids = hnp.arrays("int64", st.integers(0, 20), elements=st.integers(0, 2**40)).map(np.sort)
labels = hnp.arrays("int64", st.integers(0, 20), elements=st.integers(0, 9))
rows = (any_ints | row_ids | labels).map(sendable_rows)
floats = hnp.arrays("float64", st.integers(0, 20)).map(sendable_floats)
matrices = hnp.arrays("float64", st.tuples(st.integers(0, 6), st.integers(0, 4))).map(sendable_floats)
plain_rules = st.builds(LeverageScores, st.booleans()) | st.builds(ClusteringScores, counts)
filled_rules = st.builds(FilledScores, plain_rules)
integer_rules = st.builds(IntegerScores, plain_rules | filled_rules, st.integers(-(2**62), 2**62))
rounded_rules = st.builds(RoundedScores, plain_rules) | st.builds(CoarseScores, plain_rules, st.floats())
rules = plain_rules | filled_rules | integer_rules | rounded_rules
names = st.text(max_size=8)
bools = st.booleans()
flags = hnp.arrays("bool", st.integers(0, 20)).map(sendable_flags)
fractions = st.floats(0, 1, exclude_min=True, exclude_max=True)
splits = st.builds(HoldOut, fractions, seeds) | st.builds(SplitBy, names)

MESSAGES: dict[type[Message], st.SearchStrategy[Message]] = {
    Hello: st.builds(Hello, counts),
    Card: st.builds(
        Card,
        counts,
        counts,
        st.lists(names, max_size=4).map(tuple),
        st.none() | names,
        st.none() | st.binary(),
        st.booleans(),
        st.booleans(),
    ),
    Refused: st.builds(Refused, st.sampled_from(["input", "policy", "order", "version", "request", "failure"]), names),
    AskTotal: st.builds(AskTotal, rules),
    Total: st.builds(Total, st.floats()),
    DrawRows: st.builds(DrawRows, counts, seeds, bools),
    DrawnRows: st.builds(DrawnRows, rows),
    AskScores: st.builds(AskScores, rows, counts),
    Scores: st.builds(Scores, floats),
    UseSharedDraw: st.builds(UseSharedDraw, counts, seeds),
    UseAllRows: st.builds(UseAllRows),
    UseRows: st.builds(UseRows, rows),
    Ready: st.builds(Ready),
    AskColumns: st.builds(AskColumns, st.booleans()),
    Columns: st.builds(Columns, matrices, st.none() | floats),
}
MESSAGES |= {
    AskLocalClusters: st.builds(AskLocalClusters, counts, seeds, st.none() | floats),
    LocalClusters: st.builds(LocalClusters, matrices, rows),
    AskPartialPredictions: st.builds(AskPartialPredictions, floats, st.booleans(), st.booleans()),
    PartialPredictions: st.builds(PartialPredictions, floats, st.none() | st.floats()),
    AskPartialDistances: st.builds(AskPartialDistances, matrices, st.none() | floats),
    PartialDistances: st.builds(PartialDistances, matrices),
}
few_bits, codes = st.integers(-9, 99), st.binary(max_size=40)
MESSAGES |= {
    AskRoundedPredictions: st.builds(AskRoundedPredictions, floats, bools, bools, few_bits, seeds),
    AskRoundedDistances: st.builds(AskRoundedDistances, matrices, st.none() | floats, few_bits, seeds),
    RoundedParts: st.builds(RoundedParts, counts, floats, codes, st.none() | st.floats()),
    CodedStep: st.builds(CodedStep, counts, codes, few_bits, counts, st.none() | st.floats()),
    CodedProducts: st.builds(CodedProducts, counts, st.none() | codes, st.none() | codes),
    AskCodedProgress: st.builds(AskCodedProgress, counts, codes, few_bits),
}
digests = st.binary(max_size=64)
MESSAGES |= {
    AskPublicKey: st.builds(AskPublicKey),
    PublicKey: st.builds(PublicKey, digests, digests, digests, digests),
    AskMaskedScores: st.builds(
        AskMaskedScores,
        rows,
        st.integers(-9, 99),
        st.integers(-(2**62), 2**62),
        st.lists(st.builds(SignedKey, digests, digests, digests), max_size=4).map(tuple),
    ),
    MaskedScores: st.builds(MaskedScores, st.none() | digests, st.integers(-9, 99), digests, digests),
    AskAgreement: st.builds(AskAgreement, st.lists(st.builds(Seal, digests, digests), max_size=4).map(tuple)),
    Agreement: st.builds(Agreement, digests),
}
MESSAGES |= {
    OpenSaga: st.builds(OpenSaga, counts, seeds, st.floats(), st.floats(), st.booleans(), st.booleans()),
    SquaredNorms: st.builds(SquaredNorms, floats),
    SagaStep: st.builds(SagaStep, floats, counts, st.none() | st.floats()),
    PartialProducts: st.builds(PartialProducts, st.none() | floats, st.none() | floats),
    AskProgress: st.builds(AskProgress, floats),
    Progress: st.builds(Progress, st.floats(), st.floats()),
    AskCoefficients: st.builds(AskCoefficients),
    Coefficients: st.builds(Coefficients, floats, st.floats()),
}
MESSAGES |= {
    AskSplit: st.builds(AskSplit),
    Split: st.builds(Split, flags),
    AskRowWeights: st.builds(AskRowWeights),
    RowWeights: st.builds(RowWeights, floats),
    UseFrame: st.builds(
        UseFrame,
        st.sampled_from(["train", "test"]),
        st.sampled_from(["own", "scaled", "standard"]),
        st.none() | splits,
        st.none() | flags,
        st.none() | floats,
    ),
    Moments: st.builds(Moments, st.none() | floats, st.none() | floats),
    Deliver: st.builds(Deliver, st.none() | floats, st.none() | rows),
    Received: st.builds(Received),
    AskWhitenedRows: st.builds(AskWhitenedRows, st.booleans()),
    WhitenedRows: st.builds(WhitenedRows, matrices, st.none() | floats),
    AskPairDistances: st.builds(AskPairDistances, counts, seeds),
    PairDistances: st.builds(PairDistances, floats),
    AskRowDistances: st.builds(AskRowDistances, rows),
    RowDistances: st.builds(RowDistances, matrices),
}
MESSAGES |= {
    AskScoreCodes: st.builds(AskScoreCodes, rows, counts),
    ScoreCodes: st.builds(ScoreCodes, counts, st.binary()),
    AskWhitenedColumns: st.builds(AskWhitenedColumns, st.floats(), seeds),
    WhitenedColumns: st.builds(WhitenedColumns, counts, floats, floats, st.none() | st.floats(), st.binary()),
    AskScaledColumns: st.builds(AskScaledColumns, st.floats(), seeds),
    ScaledColumns: st.builds(ScaledColumns, counts, counts, st.floats(), floats, st.binary()),
}
signed_keys = st.lists(st.builds(SignedKey, digests, digests, digests), max_size=4).map(tuple)
seals = st.lists(st.builds(Seal, digests, digests), max_size=4).map(tuple)
boxes = st.lists(digests, max_size=4).map(tuple)
MESSAGES |= {
    AskPairKey: st.builds(AskPairKey),
    PairKey: st.builds(PairKey, digests, digests, digests, digests),
    AskPairAgreement: st.builds(AskPairAgreement, seals),
    PairAgreement: st.builds(PairAgreement, digests),
    AskSealedSeeds: st.builds(AskSealedSeeds, signed_keys),
    SealedSeeds: st.builds(SealedSeeds, boxes),
    AskGramShares: st.builds(
        AskGramShares, st.none() | floats, st.none() | rows, st.lists(counts, max_size=4).map(tuple), boxes
    ),
    GramShares: st.builds(GramShares, matrices, matrices, st.none() | digests, digests, digests, digests),
}
magnitudes = st.integers(-500, 500)
parts = (st.none() | floats, st.none() | matrices, st.none() | floats)
sealed_parts = st.lists(st.builds(SealedPart, digests, digests, digests), max_size=3).map(tuple)
MESSAGES |= {
    AskMagnitude: st.builds(AskMagnitude, *parts, st.booleans()),
    Magnitude: st.builds(Magnitude, magnitudes),
    AskMaskedPredictions: st.builds(
        AskMaskedPredictions, *parts, st.booleans(), st.booleans(), magnitudes, names, signed_keys
    ),
    MaskedPredictions: st.builds(MaskedPredictions, st.none() | digests, st.none() | st.floats(), digests, digests),
    DeliverMasked: st.builds(DeliverMasked, sealed_parts, st.floats()),
    MaskedReceived: st.builds(MaskedReceived, digests),
    AskLosses: st.builds(AskLosses, sealed_parts, st.floats()),
    SummedLosses: st.builds(SummedLosses, floats, rows, digests),
    OpenLloyd: st.builds(OpenLloyd, st.none() | floats, counts, counts, signed_keys),
    LloydOpened: st.builds(LloydOpened, st.none() | magnitudes),
    TryCenters: st.builds(TryCenters, rows, magnitudes),
    MoveCenters: st.builds(MoveCenters, rows, st.none() | rows),
    MaskedDistances: st.builds(MaskedDistances, st.none() | digests, counts),
    AskLloydCenters: st.builds(AskLloydCenters),
    LloydCenters: st.builds(LloydCenters, st.none() | matrices, st.none() | matrices, digests, digests),
}
many_boxes = st.lists(boxes, max_size=3).map(tuple)
MESSAGES |= {
    AskEncryptedRows: st.builds(
        AskEncryptedRows, st.none() | floats, st.lists(counts, max_size=4).map(tuple), signed_keys
    ),
    EncryptedRows: st.builds(EncryptedRows, floats, matrices, boxes, digests),
    AskEncryptedProducts: st.builds(AskEncryptedProducts, many_boxes, boxes),
    EncryptedProducts: st.builds(EncryptedProducts, many_boxes, floats, boxes, bools),
    AskDecryptedProducts: st.builds(AskDecryptedProducts, many_boxes, boxes),
    DecryptedProducts: st.builds(DecryptedProducts, floats, digests, digests),
}
MESSAGES |= {
    OpenDraw: st.builds(OpenDraw, rules, counts, seeds, bools),
    AskCommitment: st.builds(AskCommitment, integer_rules, digests),
    Commitment: st.builds(Commitment, digests, st.integers(-(2**63), 2**64 - 1), digests),
    AskContribution: st.builds(
        AskContribution, st.lists(st.builds(Committed, digests, digests), max_size=4).map(tuple)
    ),
    Contribution: st.builds(Contribution, st.none() | digests, digests),
    DrawCommitted: st.builds(DrawCommitted, counts, digests, st.lists(digests, max_size=4).map(tuple), digests),
    AskOpenings: st.builds(AskOpenings, integer_rules, digests, rows),
    Openings: st.builds(Openings, rows, rows, st.binary(), st.binary()),
}
MESSAGES |= {
    AskAuditedPredictions: st.builds(AskAuditedPredictions, matrices, seeds),
    AuditedPredictions: st.builds(
        AuditedPredictions,
        counts,
        floats,
        floats,
        st.none() | st.binary(),
        st.none() | st.binary(),
        st.floats(),
        st.floats(),
    ),
    AskAuditedDistances: st.builds(AskAuditedDistances, matrices),
    AuditedDistances: st.builds(AuditedDistances, counts, counts, st.floats(), st.binary()),
}
any_message = st.one_of(*MESSAGES.values())
