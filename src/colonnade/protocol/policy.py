"""The owner's policy: what a party answers at all. Amounts a day or a minute are counted where there is a clock."""

from collections.abc import Iterable

from colonnade.errors import InputError
from colonnade.messages import UNCOUNTED, Message, Reveals
from colonnade.options import whole_number
from colonnade.protocol.run_purpose import RunPurpose

PHASES = ("framing", "sampling", "summing", "solving", "predicting", "auditing", "certifying", "diagnosing")
# Phases that reveal nothing of the data.
ALWAYS = ("hello", "keys")
# What a row's values can be read from, or guessed.
OF_ROWS = frozenset(
    {
        Reveals.SCORES,
        Reveals.SCORE_SUMS,
        Reveals.FEATURES,
        Reveals.LABELS,
        Reveals.PREDICTIONS,
        Reveals.ROW_WEIGHTS,
    }
)


class Policy:
    """Refuses requests that the owner does not answer, and replies that would reveal what the owner keeps.

    Parameters
    ----------
    never : iterable of str
        What no reply may reveal: any of ``totals, row ids, scores, sums of scores, features, labels, predictions,
        moments, row weights, model``.
    phases : iterable of str, optional
        The only phases in which the party answers, of ``framing, sampling, summing, solving, predicting, auditing,
        certifying, diagnosing``; all if left out. In ``auditing`` committed draws are spot-checked.
    solvers : iterable of str, optional
        The only solvers it takes part in, such as ``saga``; all if left out.
    tasks : iterable of str, optional
        The only tasks it takes part in, such as ``regression``; all if left out. What a run is for is the server's
        word: it is asked where server and parties are apart.
    rows_a_request : int, optional
        No reply may reveal scores, features, labels, predictions or weights of more rows than this.

    Examples
    --------
    >>> import colonnade as cn
    >>> cn.Policy(never=["features", "labels"], solvers=["saga"])
    Policy(never=['features', 'labels'], solvers=['saga'])
    """

    def __init__(
        self,
        never: Iterable[str] = (),
        *,
        phases: Iterable[str] | None = None,
        solvers: Iterable[str] | None = None,
        tasks: Iterable[str] | None = None,
        rows_a_request: int | None = None,
    ) -> None:
        choices = [str(kind) for kind in Reveals if kind not in UNCOUNTED]
        self.never = frozenset(Reveals(name) for name in _known(never, choices))
        self.phases = None if phases is None else frozenset(_known(phases, PHASES))
        self.solvers = None if solvers is None else frozenset(_listed(solvers))
        self.tasks = None if tasks is None else frozenset(_listed(tasks))
        self.rows_a_request = (
            None
            if rows_a_request is None
            else whole_number("rows_a_request", rows_a_request, least=0, example="Pass for instance 5000.")
        )

    def objection_to_run(self, purpose: RunPurpose) -> str | None:
        """Say why the party takes no part in a run that is for this, or None."""
        if self.tasks is not None and purpose.task is not None and purpose.task not in self.tasks:
            return f"its owner's policy allows the tasks {_words(self.tasks)}, not {purpose.task!r}"
        return None

    def objection(self, request: Message, solver: str | None) -> str | None:
        """Say why `request`, which belongs to this solver or to none, is not answered, or None."""
        if self.phases is not None and request.phase not in (*ALWAYS, *self.phases):
            return f"its owner's policy allows the phases {_words(self.phases)}, not {request.phase!r}"
        if self.solvers is not None and solver is not None and solver not in self.solvers:
            return f"its owner's policy allows the solvers {_words(self.solvers)}, not {solver!r}"
        return None

    def refusal(self, reply: Message) -> str | None:
        """Say why `reply` may not leave, or None."""
        if self.never and (kept := sorted(self.never & reply.tells())):
            return f"its owner's policy never reveals {' or '.join(kept)}, which a {reply.kind} would"
        if self.rows_a_request is not None and rows_revealed(reply) > self.rows_a_request:
            return (
                f"its owner's policy limits a reply to {self.rows_a_request:,} rows; this {reply.kind} has "
                f"{rows_revealed(reply):,}"
            )
        return None

    def __repr__(self) -> str:
        given = ((name, value) for name, value in vars(self).items() if value is not None)
        shown = (f"{name}={value if isinstance(value, int) else sorted(map(str, value))}" for name, value in given)
        return f"Policy({', '.join(shown)})"


def rows_revealed(reply: Message) -> int:
    """Count the rows of which a reply reveals what depends on their values, each as often as it does."""
    passed_on = reply.coded_rows() if OF_ROWS.intersection(reply.passes_on()) else 0
    return max(reply.rows_of(OF_ROWS), passed_on)


def _known(names: Iterable[str], choices: Iterable[str]) -> list[str]:
    listed = _listed(names)
    if unknown := [name for name in listed if name not in choices]:
        raise InputError(f"A policy cannot name {unknown[0]!r}. Choose among: {', '.join(choices)}.")
    return listed


def _listed(names: Iterable[str]) -> list[str]:
    return [names] if isinstance(names, str) else list(names)


def _words(names: Iterable[str]) -> str:
    return ", ".join(sorted(names)) or "none"
