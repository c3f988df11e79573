"""The rules that rows are scored by: a closed set, since a rule travels; other rules are made of these."""

from colonnade.contracts import ScoreRule
from colonnade.errors import UnsupportedError
from colonnade.sampling.rules.classes import ClassScores
from colonnade.sampling.rules.clustering import ClusteringScores
from colonnade.sampling.rules.leverage import LeverageScores
from colonnade.sampling.rules.sharpened import SharpenedScores

PlainRule = LeverageScores | SharpenedScores | ClassScores | ClusteringScores


def plain_rule(rule: ScoreRule) -> PlainRule:
    """Require a rule that can travel inside another one."""
    if not isinstance(rule, PlainRule):
        raise UnsupportedError(
            f"{rule} is not a rule that rows are scored by. Use LeverageScores, SharpenedScores, ClassScores or "
            "ClusteringScores."
        )
    return rule
