"""The rules by which a party can be asked to score its rows: a closed set, since a rule arrives in a message."""

from colonnade.contracts import ScoreRule
from colonnade.errors import UnsupportedError
from colonnade.sampling.filled import FilledScores
from colonnade.sampling.integers import IntegerScores
from colonnade.sampling.plain_rules import PlainRule
from colonnade.sampling.rounded import CoarseScores, RoundedScores

AnyRule = PlainRule | RoundedScores | CoarseScores | FilledScores | IntegerScores


def travelling(rule: ScoreRule) -> AnyRule:
    """Require a rule that can travel."""
    if not isinstance(rule, AnyRule):
        raise UnsupportedError(f"{rule} cannot be sent to a party. Register it in sampling/rules.py.")
    return rule
