"""What a diagnosis says, in numbers."""

import msgspec

from colonnade.diagnostics.advice import words


class Gamma(msgspec.Struct, frozen=True):
    """How far the parties' columns are from saying the same thing (Assumption 4.1).

    Parameters
    ----------
    value : float
        γ, the smallest singular value of the joined bases: 0 where columns of several parties are dependent.
    effective : float
        The smallest that is not zero, which does all that γ does in the proof.
    dependent : int
        How many directions are dependent.
    label_dependent : bool
        Whether the label takes part in one: the columns then predict it exactly.
    halves : tuple of float, or None
        `effective` from each half of the rows looked at, where it is an estimate. It exceeds k times the true value
        with probability 1/k² at most (Markov's inequality on γ²); it may well fall short of it.
    bound : float or None
        σ_min / σ_max of all columns, which γ is at least (Lemma B.1); where all tables are in one place.
    bound_scaled : float or None
        The same with columns of length one: also a bound, for rescaling a column does not change γ.
    """

    value: float
    effective: float
    dependent: int
    label_dependent: bool
    halves: tuple[float, float] | None = None
    bound: float | None = None
    bound_scaled: float | None = None


class Tau(msgspec.Struct, frozen=True):
    """Whether some party sees apart what all together see apart (Assumption 5.1), by sampled pairs of rows.

    Parameters
    ----------
    value : float
        The least of `by_party`. The true τ, over all pairs, is at least about this.
    party : str
        Whose it is.
    by_party : dict of str to float
        The usual largest ratio among this many pairs; infinite where the party cannot tell rows apart that others can.
    most : float
        The ratio that 99 of 100 pairs stay below, at that party.
    pairs : int
        How many pairs were sampled.
    trend : tuple of (int, float)
        The usual largest ratio at that party among so many pairs: where it still grows, τ is larger than `value`.
    growth : float
        By what power of the number of pairs it grew over the last fourfold: 0 is not at all, 1 in proportion.
    """

    value: float
    party: str
    by_party: dict[str, float]
    most: float
    pairs: int
    trend: tuple[tuple[int, float], ...]
    growth: float


class Mu(msgspec.Struct, frozen=True):
    """How far any model can have the classes on the right side: mu-complexity (Munteanu et al. 2018).

    Parameters
    ----------
    value : float
        The largest ratio, over all models, of what rows are on the right side to what they are on the wrong one, both
        added up as logits. Infinite where a model has none on the wrong side.
    imbalance : float
        The ratio of the larger class to the smaller: mu is at least that, where there is an intercept.
    halves : tuple of float, or None
        The same from each half of the rows looked at, where it is an estimate; fewer rows are easier to tell apart, so
        it is rather too large.
    """

    value: float
    imbalance: float
    halves: tuple[float, float] | None = None


class Sensitivity(msgspec.Struct, frozen=True):
    """How well scores stand for what rows matter (Theorem 3.1).

    Parameters
    ----------
    total : float
        G, the sum of all scores.
    zeta : float
        ζ, the largest ratio of a row's sensitivity to its score. Regression: exact over the rows looked at. K-means:
        over the centres tried, so it may be larger; of classes over the models tried, likewise.
    bound : float
        What the theory bounds ζ by: 1/γ² for regression (with the effective γ), 4τ for k-means; for classes the largest
        of ((1 + μ) √leverage + 5 μ / n) / score.
    sensitivities : float or None
        The sum of all rows' sensitivities, where known: the total that perfect scores would have.
    """

    total: float
    zeta: float
    bound: float
    sensitivities: float | None


class Epsilon(msgspec.Struct, frozen=True):
    """How far the coreset's cost is from that of all rows, relative to it; a penalty only makes it smaller.

    Parameters
    ----------
    size : int
        Of the coreset.
    worst : float or None
        Over all models there are, for regression. None for k-means and classes: nobody can tell.
    random_mean, random_max : float
        Over models drawn at random.
    near_mean, near_max : float or None
        Over models near the best one; None where there is none to start from, or it fits perfectly.
    floor : float or None
        How far off a perfect coreset would seem, because what it is compared with is itself a sample.
    """

    size: int
    worst: float | None
    random_mean: float
    random_max: float
    near_mean: float | None
    near_max: float | None
    floor: float | None = None


class Robustness(msgspec.Struct, frozen=True):
    """How many rows must be set aside for the coreset to be within epsilon (Definition G.1).

    Parameters
    ----------
    epsilon : float
        What it is to be within.
    share : float
        β, the largest over the models tried, the worst among them; 1 where setting rows aside does not help.
    models : int
        How many were tried.
    """

    epsilon: float
    share: float
    models: int


class Diagnosis(msgspec.Struct, frozen=True):
    """What was measured of the data and of a coreset; printed, it says what that means and what to do.

    Parameters
    ----------
    task : str
        Regression, Classification or KMeans.
    n_rows, n_features, n_parties : int
        Of the federation.
    exact : bool
        Whether all rows were looked at, in one place.
    rows : int
        How many rows were looked at.
    sensitivity : Sensitivity
        G and zeta.
    gamma : Gamma or None
        For regression; for a classification that of the features.
    mu : Mu or None
        For a classification.
    tau : Tau or None
        For k-means with two rows or more.
    epsilon : Epsilon or None
        Where a coreset was given.
    robustness : Robustness or None
        Where a coreset was given and all rows were looked at.
    concerns : tuple of str
        What the assumptions do not promise, in plain words; each was raised as an `AssumptionWarning` too.
    units, bytes : int
        What measuring it cost.
    reveals : tuple of str
        What the parties showed the server for it.

    Examples
    --------
    >>> import numpy as np, colonnade as cn
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(2000, 4))
    >>> federation = cn.Federation(cn.split_columns(X, X @ np.ones(4) + rng.normal(size=2000), [2, 2]))
    >>> found = federation.diagnose(cn.Regression(), sampler=cn.ImportanceSampling(size=500))
    >>> 0.3 < found.gamma.effective < 0.6, found.epsilon.worst < 0.6, found.concerns
    (True, True, ())
    """

    task: str
    n_rows: int
    n_features: int
    n_parties: int
    exact: bool
    rows: int
    sensitivity: Sensitivity
    gamma: Gamma | None = None
    mu: Mu | None = None
    tau: Tau | None = None
    epsilon: Epsilon | None = None
    robustness: Robustness | None = None
    concerns: tuple[str, ...] = ()
    units: int = 0
    bytes: int = 0
    reveals: tuple[str, ...] = ()

    def __str__(self) -> str:
        return words(self)
