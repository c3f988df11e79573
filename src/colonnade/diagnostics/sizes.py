"""The size that a theorem asks for, and what it then promises."""

import math
from typing import assert_never

import msgspec

from colonnade.errors import InputError
from colonnade.kernels.sizes import (
    class_size,
    clustering_size,
    regression_size,
    robust_clustering_size,
    robust_regression_size,
    sampling_size,
)
from colonnade.options import positive_number, whole_number
from colonnade.tasks import Classification, KMeans, PaperTask, Regression


class TheorySize(msgspec.Struct, frozen=True):
    """What a theorem asks for and promises.

    Parameters
    ----------
    theorem : str
        Which.
    size : int
        m, with the constant below.
    constant : float
        The C of O(...), which the paper leaves open: the size is this many times something proved up to a factor only.
    epsilon, delta : float
        With probability 1 - delta, the coreset's costs are within 1 ± epsilon of those of all rows, for all models.
    beta : float or None
        Where the theorem is a robust one: for each model, once this share of the rows is set aside.
    ratio : float or None
        Theorem 2.5: how far the cost of what is learned on the coreset is from the least: (1 + 3 epsilon) alpha.
        With the coreset defined as in the paper this is proved for epsilon up to 1/3. None for robust coresets.
    sampling_units : int
        Λ_0, what Algorithm 1 sends: m + 2 m T + 2 T.
    units : int
        Theorem 2.5: Λ_0 + 2 m T + Λ(m), with Λ(m) of `Central`, the rows themselves.

    Examples
    --------
    >>> import colonnade as cn
    >>> robust = cn.theory_size(cn.KMeans(n_clusters=5), epsilon=0.2, n_features=6, n_parties=2, beta=0.05)
    >>> robust.theorem, f"{robust.size:,}", robust.ratio
    ('Theorem G.4', '206,223,327', None)
    """

    theorem: str
    size: int
    constant: float
    epsilon: float
    delta: float
    beta: float | None
    ratio: float | None
    sampling_units: int
    units: int

    def __str__(self) -> str:
        aside = "" if self.beta is None else f", once {self.beta:.2%} of the rows are set aside"
        ratio = "" if self.ratio is None else f" What is learned on it costs at most {self.ratio:.3g} times the least."
        return (
            f"{self.theorem}: {self.size:,} rows, times an unknown constant that was taken as {self.constant:g}. With "
            f"probability {1 - self.delta:.2%} its costs are then within {self.epsilon:.1%}, for all "
            f"models{aside}.{ratio} To send: {self.units:,} units, {self.sampling_units:,} of them to draw it."
        )


def theory_size(
    task: PaperTask,
    *,
    epsilon: float,
    n_features: int,
    n_parties: int,
    delta: float = 0.05,
    gamma: float | None = None,
    tau: float | None = None,
    mu: float | None = None,
    n_rows: float | None = None,
    zeta: float | None = None,
    total: float | None = None,
    beta: float | None = None,
    alpha: float = 1.0,
    constant: float = 1.0,
) -> TheorySize:
    """Compute the size that the theory asks for. Usually far more than is needed: `Federation.plan` is the other way.

    Which theorem: the one whose assumption is given. `gamma` is Theorem 4.2 (regression), `tau` Theorem 5.2 (k-means),
    `zeta` with `total` Theorem 3.1 (all), `beta` Theorems G.3 and G.4, which assume nothing and promise a robust
    coreset. For a classification `mu`, `gamma` and `n_rows` bound zeta and the total, and Theorem 3.1 does the rest: the
    size grows with the root of the number of rows.

    Parameters
    ----------
    task : Regression, Classification or KMeans
        What to learn.
    epsilon, delta : float
        Within 1 ± epsilon with probability 1 - delta; both between 0 and 1.
    n_features, n_parties : int
        d and T.
    gamma, tau, mu, n_rows, zeta, total, beta : float, optional
        What is known of the data, from a `Diagnosis`, or the share of rows that may be set aside.
    alpha : float
        How far the k-means algorithm is from the best clustering; 1 for regression.
    constant : float
        The C that the paper leaves open. Nothing is known of it; 1 shows how sizes compare.

    Returns
    -------
    TheorySize
        The size, its theorem, what it promises and what it sends.

    Examples
    --------
    >>> import colonnade as cn
    >>> asked = cn.theory_size(cn.Regression(), epsilon=0.1, n_features=18, n_parties=2, gamma=0.15)
    >>> asked.theorem, f"{asked.size:,}", asked.constant, asked.ratio
    ('Theorem 4.2', '173,504,795', 1.0, 1.3)
    """
    epsilon, delta = (_between_0_and_1(name, value) for name, value in (("epsilon", epsilon), ("delta", delta)))
    n_features, n_parties = (
        whole_number(name, value, least=1, example="Pass for instance 3.")
        for name, value in (("n_features", n_features), ("n_parties", n_parties))
    )
    constant = positive_number("constant", constant, example="Pass for instance constant=1.0.")
    alpha = positive_number("alpha", alpha, example="Pass 1 or more: alpha=1.0.")
    known = {"gamma": gamma, "tau": tau, "mu": mu, "n_rows": n_rows, "zeta": zeta, "total": total, "beta": beta}
    given = {name: _known(name, value) for name, value in known.items() if value is not None}
    theorem, size = _size(task, epsilon, delta, n_features, n_parties, given, alpha, constant)
    if not math.isfinite(size):
        raise InputError(
            f"{theorem} asks for infinitely many rows with {given}. It promises nothing here; try beta=0.01."
        )
    m = max(1, math.ceil(size))
    sampling = m + 2 * m * n_parties + 2 * n_parties
    central = m * (n_features + task.needs_label)
    ratio = None if "beta" in given else (1 + 3 * epsilon) * alpha
    units = sampling + 2 * m * n_parties + central
    return TheorySize(theorem, m, constant, epsilon, delta, given.get("beta"), ratio, sampling, units)


def _size(
    task: PaperTask,
    epsilon: float,
    delta: float,
    d: int,
    n_parties: int,
    given: dict[str, float],
    alpha: float,
    constant: float,
) -> tuple[str, float]:
    match task:
        case Regression():
            wanted, found = "gamma", _regression_size(epsilon, delta, d, n_parties, given, constant)
        case Classification():
            wanted, found = "mu=..., gamma=... and n_rows", _class_size(epsilon, delta, d, n_parties, given, constant)
        case KMeans():
            wanted, found = (
                "tau",
                _clustering_size(task.n_clusters, epsilon, delta, d, n_parties, given, alpha, constant),
            )
        case _:
            assert_never(task)
    if found is None:
        or_robust = "" if isinstance(task, Classification) else ", or beta=..."
        raise InputError(
            f"No theorem for {type(task).__name__} takes {', '.join(given) or 'nothing'}. "
            f"Pass {wanted}=..., or zeta=... and total=...{or_robust}."
        )
    return found


def _regression_size(
    epsilon: float, delta: float, d: int, n_parties: int, given: dict[str, float], constant: float
) -> tuple[str, float] | None:
    match given:
        case {"zeta": zeta, "total": total, **rest} if not rest:
            return "Theorem 3.1", sampling_size(epsilon, delta, zeta, total, d**2, constant)
        case {"gamma": gamma, **rest} if not rest:
            return "Theorem 4.2", regression_size(epsilon, delta, d, gamma, constant)
        case {"beta": beta, **rest} if not rest:
            return "Theorem G.3", robust_regression_size(epsilon, delta, beta, d, n_parties, constant)
    return None


def _class_size(
    epsilon: float, delta: float, d: int, n_parties: int, given: dict[str, float], constant: float
) -> tuple[str, float] | None:
    match given:
        case {"zeta": zeta, "total": total, **rest} if not rest:
            return "Theorem 3.1", sampling_size(epsilon, delta, zeta, total, d + 1, constant)
        case {"mu": mu, "gamma": gamma, "n_rows": n_rows, **rest} if not rest:
            return "Theorem 3.1, by mu", class_size(epsilon, delta, d, n_parties, n_rows, mu, gamma, constant)
    return None


def _clustering_size(
    k: int, epsilon: float, delta: float, d: int, n_parties: int, given: dict[str, float], alpha: float, constant: float
) -> tuple[str, float] | None:
    match given:
        case {"zeta": zeta, "total": total, **rest} if not rest:
            return "Theorem 3.1", sampling_size(epsilon, delta, zeta, total, d * k, constant)
        case {"tau": tau, **rest} if not rest:
            return "Theorem 5.2", clustering_size(epsilon, delta, d, k, n_parties, tau, alpha, constant)
        case {"beta": beta, **rest} if not rest:
            return "Theorem G.4", robust_clustering_size(epsilon, delta, beta, d, k, alpha, constant)
    return None


def _known(name: str, value: float) -> float:
    if name in ("beta", "gamma"):
        return _between_0_and_1(name, value, closed=name == "gamma")
    return positive_number(name, value, example=f"Pass what was measured: {name}=3.0.")


def _between_0_and_1(name: str, value: float, *, closed: bool = False) -> float:
    number = positive_number(name, value, example=f"Pass for instance {name}=0.1.")
    if number > 1 or (number == 1 and not closed):
        raise InputError(f"{name} must lie between 0 and 1, got {value!r}. Pass for instance {name}=0.1.")
    return number
