"""The owner's policy: what a party answers at all. Amounts a day or a minute are counted where there is a clock."""

import re
from collections.abc import Iterable, Sequence
from typing import Any, Literal

from colonnade.errors import InputError
from colonnade.messages import UNCOUNTED, Message, Reveals
from colonnade.options import flag, positive_number, whole_number

PHASES = ("aligning", "framing", "sampling", "summing", "solving", "predicting", "auditing", "certifying", "diagnosing")
# Ways to match records other than by their order.
ALIGN = ("clear", "aided", "curve")
# Phases that reveal nothing of the data but what columns are called.
ALWAYS = ("hello", "opening", "preparing", "keys", "telling")
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


# What is told of many rows together.
OF_MANY_ROWS = frozenset({Reveals.MOMENTS, Reveals.TOTALS, Reveals.MODEL})
# What to ask for instead, where a reply of a phase would reveal what the owner keeps.
INSTEAD = {
    ("summing", Reveals.SCORES): "Sum scores in secret",
    ("summing", Reveals.FEATURES): "Sum scores in secret",
    ("summing", Reveals.LABELS): "Sum scores in secret",
    ("framing", Reveals.LABELS): "Draw evenly, or with class_blind",
    ("solving", Reveals.FEATURES): "Use a solver that shows no rows",
    ("predicting", Reveals.FEATURES): "Use deliver, or evaluate with by=",
    ("predicting", Reveals.LABELS): "Use evaluate with by=, the label party",
}
Level = Literal["strict", "usual", "open"]
LEVELS: dict[str, dict[str, Any]] = {
    "strict": {
        "never": ["features", "labels", "scores", "row weights"],
        "solvers": ["gram"],
        "least_rows": 10,
        "least_parties": 3,
        "parameters_a_row": 0.1,
        "known_only": True,
        "models_in_all": 1 / 3,
        "sums_in_all": 0.5,
        "align": ["aided", "curve"],
    },
    "usual": {
        "least_rows": 10,
        "known_only": True,
        "models_in_all": 100,
        "sums_in_all": 0.5,
        "align": ["aided", "curve"],
    },
    "open": {},
}


class Policy:
    """Refuses jobs and requests that the owner does not answer, and replies that would reveal what the owner keeps.

    It is the same as between machines, in `[policy]`, but for the amounts a day, which only a party there counts. What
    is left out is as the level has it.

    Parameters
    ----------
    level : {"usual", "strict", "open"}
        "open" answers whatever a job sheet says; "usual" shows drawn rows, but only aggregates of enough of them, and
        applies only models it knows; "strict" tells nothing of single rows but which were drawn.
    never : iterable of str
        What no reply may reveal: any of ``keys, matches, totals, row ids, scores, sums of scores, features, labels,
        levels, predictions, moments, row weights, model``.
    phases : iterable of str, optional
        The only phases in which the party answers, of ``aligning, framing, sampling, summing, solving, predicting,
        auditing, certifying, diagnosing``; all if left out. In ``auditing`` committed draws are spot-checked.
    solvers, tasks : iterable of str, optional
        The only solvers and tasks it takes part in, such as ``saga`` and ``regression``; all if left out. They are
        those of the job sheet, and the party answers nothing else than the sheet entails.
    rows_a_request : int, optional
        No reply may reveal scores, features, labels, predictions or weights of more rows than this.
    least_rows : int
        Of how many distinct rows each sum must be that it tells (moments, folds, clusters, losses); how many rows a
        split holds out and leaves; and by how many rows sums of different runs must differ. Where features are never
        shown, rows are scored for log2(rows / least_rows) different splits at most, for all time, and for half as many
        as a row has products of values. Columns are prepared for as many choices of rows, that far apart. 1 is no such
        limit.
    least_parties : int
        It takes part in jobs of so many parties or more.
    parameters_a_row : float, optional
        A model may have at most so many parameters for each row that it is learned on, such as 0.1.
    known_only : bool
        Whether only coresets that the party agreed on, and models that it helped to learn, are used again.
    accepted : iterable of str
        Models besides that its owner accepts: digests in hexadecimal, as the refusal names them.
    models_in_all : int or float, optional
        How many models it applies for another party, for all time; below 1, as a share of its columns, at least one.
    sums_in_all : float, optional
        How many numbers about many rows it tells in all, for all time, for each value of its table. The levels strict
        and usual have 0.5: with 1, there may be equations enough to work out all values. Sums over fewer rows than
        `least_rows` are never told, and none from which a row follows by adding and subtracting.
    align : iterable of str, optional
        The only ways to match records with others, of ``clear, aided, curve``; "clear" tells the server all keys.
    columns : iterable of str, optional
        The only columns of the table that enter, label, key, weight and split among them; all if left out. The others
        are dropped when the `Party` is made: nothing is computed of them, and nobody is told their names.
    never_columns : iterable of str
        Columns that never enter. Columns of an array are called ``NAME_0``, ``NAME_1``, ..., ``NAME_label``.

    Examples
    --------
    >>> import colonnade as cn
    >>> cn.Policy(never=["features", "labels"], solvers=["gram"])
    Policy(level='usual', never=['features', 'labels'], solvers=['gram'])
    >>> cn.Policy(level="strict").least_rows
    10
    >>> cn.Party("bank", [[30.0, 7.0], [40.0, 8.0]], policy=cn.Policy(never_columns=["bank_1"]))
    Party('bank', 2 rows, 1 features)
    """

    def __init__(
        self,
        never: Iterable[str] | None = None,
        *,
        level: Level = "usual",
        phases: Iterable[str] | None = None,
        solvers: Iterable[str] | None = None,
        tasks: Iterable[str] | None = None,
        rows_a_request: int | None = None,
        least_rows: int | None = None,
        least_parties: int | None = None,
        parameters_a_row: float | None = None,
        known_only: bool | None = None,
        accepted: Iterable[str] | None = None,
        models_in_all: float | None = None,
        sums_in_all: float | None = None,
        align: Iterable[str] | None = None,
        columns: Iterable[str] | None = None,
        never_columns: Iterable[str] | None = None,
    ) -> None:
        if level not in LEVELS:
            raise InputError(f"A policy cannot be {level!r}. Choose among: {', '.join(LEVELS)}.")
        written = {
            "never": never,
            "phases": phases,
            "solvers": solvers,
            "tasks": tasks,
            "rows_a_request": rows_a_request,
            "least_rows": least_rows,
            "least_parties": least_parties,
            "parameters_a_row": parameters_a_row,
            "known_only": known_only,
            "accepted": accepted,
            "models_in_all": models_in_all,
            "sums_in_all": sums_in_all,
            "align": align,
            "columns": columns,
            "never_columns": never_columns,
        }
        self.level = level
        self._written = {name: rule for name, rule in written.items() if rule is not None}
        rules = {**LEVELS[level], **self._written}
        choices = [str(kind) for kind in Reveals if kind not in UNCOUNTED]
        self.never = frozenset(Reveals(name) for name in _known("never", rules.get("never", ()), choices))
        self.phases = None if phases is None else frozenset(_known("phases", phases, PHASES))
        self.solvers = frozenset(_listed(rules["solvers"])) if "solvers" in rules else None
        self.tasks = None if tasks is None else frozenset(_listed(tasks))
        self.rows_a_request = (
            None
            if rows_a_request is None
            else whole_number("rows_a_request", rows_a_request, least=0, example="Pass for instance 5000.")
        )
        self.least_rows = whole_number(
            "least_rows", rules.get("least_rows", 1), least=1, example="Pass for instance 10."
        )
        self.least_parties = whole_number(
            "least_parties", rules.get("least_parties", 1), least=1, example="Pass for instance 3."
        )
        self.parameters_a_row = (
            positive_number("parameters_a_row", rules["parameters_a_row"], example="Pass for instance 0.1.")
            if "parameters_a_row" in rules
            else None
        )
        self.known_only = flag("known_only", rules.get("known_only", False))
        self.accepted = frozenset(map(_digest, _listed(rules.get("accepted", ()))))
        self.models_in_all = (
            positive_number(
                "models_in_all",
                rules["models_in_all"],
                example="Pass for instance 100; never=['predictions'] applies none.",
            )
            if "models_in_all" in rules
            else None
        )
        self.sums_in_all = (
            positive_number("sums_in_all", rules["sums_in_all"], example="Pass for instance 0.5.")
            if "sums_in_all" in rules
            else None
        )
        if self.models_in_all is not None and self.models_in_all > 1 and self.models_in_all % 1:
            raise InputError(
                f"models_in_all must be a whole number, or below 1, got {models_in_all!r}. Pass for instance 100."
            )
        self.align = frozenset(_known("align", rules["align"], ALIGN)) if "align" in rules else None
        self.columns = None if columns is None else frozenset(_listed(columns))
        self.never_columns = frozenset(_listed(rules.get("never_columns", ())))
        if both := sorted((self.columns or frozenset()) & self.never_columns):
            raise InputError(
                f"A policy cannot name the column {both[0]!r} in columns and in never_columns. Take it out of one."
            )

    def models_of(self, n_columns: int) -> int | None:
        """Say how many models a party of so many columns applies for others, for all time; None is no limit."""
        if self.models_in_all is None:
            return None
        return int(self.models_in_all) if self.models_in_all >= 1 else max(1, int(self.models_in_all * n_columns))

    def objection(self, request: Message, solver: str | None) -> str | None:
        """Say why `request`, which belongs to this solver or to none, is not answered, or None."""
        if self.phases is not None and request.phase not in (*ALWAYS, *self.phases):
            return not_allowed("phase", self.phases, repr(request.phase))
        if self.solvers is not None and solver is not None and solver not in self.solvers:
            return not_allowed("solver", self.solvers, repr(solver))
        return None

    def refusal(self, reply: Message) -> str | None:
        """Say why `reply` may not leave, or None."""
        if self.never and (kept := sorted(self.never & reply.tells())):
            return never_revealed(kept, type(reply))
        if self.rows_a_request is None:
            return None
        return self.objection_to_rows(type(reply), rows_revealed(reply))

    def objection_to_rows(self, kind: type[Message], n_rows: int) -> str | None:
        """Say why values of so many rows may not be told, in one reply of a kind or in a job's replies together."""
        if self.rows_a_request is None or n_rows <= self.rows_a_request:
            return None
        return (
            f"its owner's policy limits a reply to {self.rows_a_request:,} rows; this {kind.__name__} has {n_rows:,}. "
            "Ask for fewer"
        )

    def __repr__(self) -> str:
        shown = (f"{name}={value!r}" for name, value in {"level": self.level, **self._written}.items())
        return f"Policy({', '.join(shown)})"


def not_allowed(what: str, allowed: Iterable[str], found: str) -> str:
    """Say that an owner allows some tasks, solvers or phases, and this is none of them."""
    return (
        f"its owner's policy allows the {what}s {_words(allowed)}, not {found}. Ask for another job, or ask its owner"
    )


def never_revealed(kept: Sequence[Reveals], reply: type[Message]) -> str:
    """Say that an owner keeps what a reply would reveal, and what to ask for instead."""
    instead = INSTEAD.get((reply.phase, kept[0]), "Ask for another job")
    return (
        f"its owner's policy never reveals {' or '.join(kept)}, which a {reply.__name__} would. {instead}, or ask its "
        "owner"
    )


def rows_revealed(reply: Message) -> int:
    """Count the rows of which a reply reveals what depends on their values, each as often as it does."""
    passed_on = reply.coded_rows() if OF_ROWS.intersection(reply.passes_on()) else 0
    return max(reply.rows_of(OF_ROWS), passed_on)


def amounts(request: Message, reply: Message) -> dict[str, int]:
    """Count what a reply tells of single rows, and of many: rows, ids of rows, numbers, models applied.

    A model that is applied window by window is one.
    """
    tells = reply.tells()
    of_rows = bool(OF_ROWS & tells)
    return {
        "rows": rows_revealed(reply),
        "row_ids": reply.rows_of({Reveals.ROW_IDS}),
        "keys": reply.rows_of({Reveals.KEYS, Reveals.MATCHES}),
        "numbers": reply.units() if of_rows else 0,
        "moments": reply.units() if tells & OF_MANY_ROWS and not of_rows else 0,
        "models": int(Reveals.PREDICTIONS in tells and not request.goes_on),
    }


def _known(rule: str, names: Iterable[str], choices: Iterable[str]) -> list[str]:
    listed = _listed(names)
    if unknown := [name for name in listed if name not in choices]:
        raise InputError(f"A policy cannot name {unknown[0]!r} in {rule}. Choose among: {', '.join(choices)}.")
    return listed


def _listed(names: Iterable[str]) -> list[str]:
    return [names] if isinstance(names, str) else list(names)


def _digest(text: str) -> str:
    if not isinstance(text, str) or not re.fullmatch(r"[0-9a-f]{64}", text):
        raise InputError(
            f"accepted takes digests of 64 hexadecimal digits, got {text!r}. Copy one from a refusal that names it."
        )
    return text


def _words(names: Iterable[str]) -> str:
    return ", ".join(sorted(names)) or "none"
