"""The owner's policy: what a party answers at all."""

from collections.abc import Iterable

from colonnade.errors import InputError
from colonnade.messages import UNCOUNTED, Message, Reveals


class Policy:
    """Refuses replies that would reveal what the owner keeps.

    Parameters
    ----------
    never : iterable of str
        What no reply may reveal: any of ``totals, row ids, scores, sums of scores, features, labels,
        predictions, moments, row weights, model``.

    Examples
    --------
    >>> import colonnade as cn
    >>> cn.Policy(never=["features", "labels"])
    Policy(never=['features', 'labels'])
    """

    def __init__(self, never: Iterable[str] = ()) -> None:
        names = [never] if isinstance(never, str) else list(never)
        choices = [str(kind) for kind in Reveals if kind not in UNCOUNTED]
        if unknown := [name for name in names if name not in choices]:
            raise InputError(f"A policy cannot name {unknown[0]!r}. Choose among: {', '.join(choices)}.")
        self.never = frozenset(Reveals(name) for name in names)

    def refusal(self, reply: Message) -> str | None:
        """Say why `reply` may not leave, or None."""
        kept = [str(kind) for kind in reply.reveals() if kind in self.never]
        if not kept:
            return None
        return f"its owner's policy never reveals {' or '.join(kept)}, which a {reply.kind} would"

    def __repr__(self) -> str:
        return f"Policy(never={sorted(map(str, self.never))})"
