"""What the numbers mean and what to do, in plain words; and when to warn.

**When to warn.** The theorems ask for a size of C ζ G / ε² times a factor above 1 (Theorem 3.1), with ζ at most 1/γ²
(Lemma E.2) or 4 τ (Lemma F.2). Where G/γ², or τ G, exceeds the size, they promise nothing at it: not even with C = 1,
not even ε = 1. That is the threshold. For classes ζ is bounded by μ and by the root of n: it is μ G, what is left where
no row has much leverage. Without a coreset it is the number of rows: then no coreset smaller than the data
is promised anything.
"""

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from colonnade.diagnostics.records import Diagnosis, Epsilon, Gamma, Mu, Robustness, Sensitivity, Tau

REMEDY = (
    "Draw more rows; or mix in even draws, ImportanceSampling(size, uniform_share=0.1), so that no row weighs too much;"
    " or let one party hold {columns}. Then measure epsilon again: what is not promised may still hold."
)
CENTRE = (
    "First pass standardize=True, or let each party centre its columns: next to an intercept a column far from zero "
    "looks like the constant, and centred it gives the same model. "
)
# A tau that grows by more than this power of the number of pairs has not settled: over all n²/2 pairs of a few thousand
# rows it would be ten times the value or more.
GROWS = 0.25


def regression_concern(gamma: "Gamma", sensitivity: "Sensitivity", size: int, *, uncentred: bool) -> str | None:
    """Say why Theorem 4.2 promises nothing at this size, and what to do, or None.

    The size is the coreset's, or the number of rows. `uncentred`: columns far from zero can be part of the trouble.
    """
    remedy = CENTRE * uncentred + REMEDY.format(columns="the columns that overlap")
    if gamma.label_dependent:
        return (
            "The columns of all parties together predict the label exactly in the rows looked at. The least cost is "
            "then zero, or decided by a few rows that no party can tell from the others, and a coreset may miss these: "
            f"its cost can be off by any factor. If the label is meant to be exact, that is fine; otherwise: {remedy}"
        )
    needed = math.inf if gamma.effective == 0 else sensitivity.total / gamma.effective**2
    if needed <= size:
        return None
    return (
        f"The parties' columns overlap: gamma is {gamma.effective:.2g}. The scores then bound a row's influence only "
        f"up to 1/gamma² = {1 / gamma.effective**2:,.0f}, and the theorem promises nothing below G/gamma² = "
        f"{needed:,.0f} rows; there are {size:,}. What counts in the end is zeta, {sensitivity.zeta:.3g} in the rows "
        f"looked at. {remedy}"
    )


def clustering_concern(tau: "Tau", total: float, size: int) -> str | None:
    """Say why Theorem 5.2 promises nothing at this size, the coreset's or all rows', and what to do; `total` is G."""
    if tau.value * total <= size:
        return None
    remedy = REMEDY.format(columns="the columns that tell the rows apart")
    if math.isinf(tau.value):
        return (
            "For every party there are rows that look the same to it and differ in other columns, so tau is infinite: "
            "rows that matter may look like any other to all parties, and the theorem promises nothing at any size. "
            f"{remedy}"
        )
    return (
        f"No party alone tells rows apart as well as all together: tau is {tau.value:,.0f} or more, at {tau.party!r}. "
        f"The theorem promises nothing below tau G = {tau.value * total:,.0f} rows; there are {size:,}. {remedy}"
    )


def classes_concern(mu: "Mu", total: float, size: int) -> str | None:
    """Say why nothing is promised at this size, the coreset's or all rows', and what to do; `total` is G."""
    if math.isinf(mu.value):
        return (
            "In the rows looked at a model has no row on the wrong side, so mu is infinite: nothing is promised at any "
            "size, and without a penalty there is no best model. Give a penalty, for instance l2=1e-4, and measure "
            "epsilon: what is not promised may still hold."
        )
    if mu.value * total <= size:
        return None
    return (
        f"Models can have most of the classes on the right side: mu is {mu.value:,.3g}, where the larger class has "
        f"{mu.imbalance:,.3g} times the rows of the smaller. Nothing is promised below mu G = {mu.value * total:,.0f} "
        f"rows, not even for rows of small leverage; there are {size:,}. Draw more rows, and measure epsilon again: "
        "what is not promised may still hold."
    )


def words(found: "Diagnosis") -> str:
    """Tell a diagnosis in paragraphs: what was measured, what it means, what to do."""
    parts = [_introduction(found)]
    if found.gamma is not None:
        parts.append(_gamma_words(found.gamma))
    if found.mu is not None:
        parts.append(_mu_words(found.mu))
    if found.tau is not None:
        parts.append(_tau_words(found.tau))
    parts.append(_sensitivity_words(found.sensitivity))
    if found.epsilon is not None:
        parts.append(_epsilon_words(found.epsilon))
    if found.robustness is not None:
        parts.append(_robustness_words(found.robustness))
    parts.append("\n".join(f"What to do: {concern}" for concern in found.concerns) or "What to do: nothing.")
    parts.append(_cost_words(found))
    return "\n\n".join(parts)


def _introduction(found: "Diagnosis") -> str:
    how = "all rows, in one place" if found.exact else f"{found.rows:,} draws, half by scores, half evenly"
    return (
        f"{found.task}: {found.n_parties} parties, {found.n_rows:,} rows, {found.n_features} columns. Looked at: {how}."
    )


def _gamma_words(gamma: "Gamma") -> str:
    text = (
        f"gamma = {gamma.effective:.3g}: how far the parties' columns are from saying the same thing. 1 is not at all "
        "the same; the size that the theorem asks for grows with 1/gamma²."
    )
    if gamma.halves is not None:
        text += f" Two halves of the rows gave {gamma.halves[0]:.3g} and {gamma.halves[1]:.3g}."
    if gamma.bound is not None and gamma.bound_scaled is not None:
        text += f" The lemma's bound is {gamma.bound:.2g}; with columns of one length {gamma.bound_scaled:.2g}."
    if gamma.dependent:
        text += (
            f" Leaving out {gamma.dependent} exact dependence{'s' * (gamma.dependent > 1)} between parties' columns, "
            "which make the gamma of the definition 0 and harm nothing if they hold in every row."
        )
    return text


def _mu_words(mu: "Mu") -> str:
    text = (
        f"mu = {mu.value:,.3g}: how much more any model has rows on the right side than on the wrong one, added up as "
        f"logits; the larger class has {mu.imbalance:,.3g} times the rows of the smaller, and mu is at least that "
        "where there is an intercept. What rows matter is bounded by it and by the root of their leverage."
    )
    if mu.halves is not None:
        text += f" Two halves of the rows gave {mu.halves[0]:,.3g} and {mu.halves[1]:,.3g}."
    return text


def _tau_words(tau: "Tau") -> str:
    parties = ", ".join(f"{party} {value:,.3g}" for party, value in tau.by_party.items())
    trend = ", ".join(f"{value:,.3g} of {pairs:,}" for pairs, value in tau.trend)
    settled = "still growing: the true tau is larger" if tau.growth > GROWS else "settling"
    return (
        f"tau = {tau.value:,.3g}: how much farther apart two rows are in all columns than in those of one party, at "
        f"most, squared; the best is {tau.party!r}. By party: {parties}. It is the largest among pairs of rows: {trend}"
        f"; {settled}. 99 of 100 pairs stay below {tau.most:,.3g}."
    )


def _sensitivity_words(sensitivity: "Sensitivity") -> str:
    ideal = "" if sensitivity.sensitivities is None else f" Perfect scores would have {sensitivity.sensitivities:,.3g}."
    return (
        f"G = {sensitivity.total:,.4g}, the sum of all scores.{ideal} zeta = {sensitivity.zeta:,.3g}: how much more "
        f"a row can matter than its score says, at most; the assumption bounds it by {sensitivity.bound:,.3g}."
    )


def _epsilon_words(epsilon: "Epsilon") -> str:
    text = f"epsilon of the coreset of {epsilon.size:,} rows: how far its cost is from that of all rows. "
    if epsilon.worst is not None:
        text += f"Worst of all models {epsilon.worst:.1%}. "
    text += f"Random models {epsilon.random_mean:.1%} on average, {epsilon.random_max:.1%} at most."
    if epsilon.near_mean is not None and epsilon.near_max is not None:
        text += f" Models near the best {epsilon.near_mean:.1%} on average, {epsilon.near_max:.1%} at most."
    if epsilon.floor is not None:
        text += f" A perfect coreset would seem {epsilon.floor:.1%} off, for it is compared with a sample."
    return text


def _robustness_words(robustness: "Robustness") -> str:
    if robustness.share >= 1:
        return (
            f"Setting rows aside does not bring the coreset within {robustness.epsilon:.0%} at all {robustness.models} "
            "models tried."
        )
    return (
        f"{robustness.share:.2%} of the rows must be set aside for the coreset to be within {robustness.epsilon:.0%}, "
        f"at the worst of {robustness.models} models."
    )


def _cost_words(found: "Diagnosis") -> str:
    if found.exact:
        return "Nothing was sent: all tables were in one place."
    return f"It cost {found.units:,} units, {found.bytes:,} bytes. The server was shown: {', '.join(found.reveals)}."
