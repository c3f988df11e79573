"""The rules by which a party can be asked to score its rows: a closed set, since a rule arrives in a message.

Rows are scored by the rules of `plain`: `leverage`, or `sharpened` in its place, `classes` and `clustering`. The others
change the scores of another rule: `rounded` to few bits, `filled` up to a total that is set, `integers` to whole
numbers that can be committed to.
"""

from colonnade.contracts import ScoreRule
from colonnade.errors import UnsupportedError
from colonnade.sampling.rules.filled import FilledScores
from colonnade.sampling.rules.integers import IntegerScores
from colonnade.sampling.rules.plain import PlainRule
from colonnade.sampling.rules.rounded import RoundedScores

AnyRule = PlainRule | RoundedScores | FilledScores | IntegerScores


def travelling(rule: ScoreRule) -> AnyRule:
    """Require a rule that can travel."""
    if not isinstance(rule, AnyRule):
        raise UnsupportedError(f"{rule} cannot be sent to a party. Register it in sampling/rules/__init__.py.")
    return rule
