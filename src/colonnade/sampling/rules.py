"""The rules by which a party can be asked to score its rows: a closed set, since a rule arrives in a message."""

from colonnade.sampling.clustering import ClusteringScores
from colonnade.sampling.filled import FilledScores
from colonnade.sampling.integers import IntegerScores
from colonnade.sampling.leverage import LeverageScores
from colonnade.sampling.rounded import CoarseScores, RoundedScores

AnyRule = LeverageScores | ClusteringScores | RoundedScores | CoarseScores | FilledScores | IntegerScores
