"""Numbers, times and runs as people say them."""

from datetime import UTC, datetime

MINUTE, HOUR, DAY = 60, 3600, 86400
# Before so many rounds nobody can tell how long the others take.
LEAST_ROUNDS = 6
VERBS = {
    "align": "Match records",
    "certify": "Certify a model",
    "coreset": "Draw a coreset",
    "deliver": "Deliver predictions",
    "diagnose": "Diagnose",
    "evaluate": "Evaluate a model",
    "fit": "Learn a model",
    "hello": "Greet the parties",
    "plan": "Plan",
    "predict": "Predict",
    "prepare": "Prepare columns",
    "spot-check": "Check draws",
}
TASKS = {"kmeans": "k-means clustering"}


def span_in_words(seconds: float) -> str:
    """Say how long: 40 s, 3 min, 2.5 h, 4 days."""
    if seconds < MINUTE:
        return f"{max(seconds, 0):.0f} s"
    if seconds < HOUR:
        return f"{seconds / MINUTE:.0f} min"
    if seconds < 2 * DAY:
        return f"{seconds / HOUR:.1f} h"
    return f"{seconds / DAY:.0f} days"


def seconds_since(moment: str, now: datetime | None = None) -> float | None:
    """Tell how long ago a moment was, if it is one."""
    try:
        found = datetime.fromisoformat(moment)
    except ValueError:
        return None
    return ((now or datetime.now(UTC)) - (found if found.tzinfo else found.replace(tzinfo=UTC))).total_seconds()


def title_of(verb: str, task: str | None = None) -> str:
    """Say what a run or a job does."""
    words = VERBS.get(verb, verb)
    return words if task is None else f"{words}: {TASKS.get(task, task)}"


def listed(names: list[str], most: int = 5) -> str:
    """Name a few of many."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def counted(number: int, one: str, many: str = "") -> str:
    """Count things: 1 run, 2 runs."""
    return f"{number:,} {one if number == 1 else many or f'{one}s'}"


def time_left(number: int, total: int, seconds: float) -> str | None:
    """Say about how long the rest takes, where rounds are counted and some are done."""
    if not total or number < LEAST_ROUNDS or number > total:
        return None
    return f"about {span_in_words(seconds / (number - 1) * (total - number + 1))} left"
