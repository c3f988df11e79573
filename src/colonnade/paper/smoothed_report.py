"""What the smoothed analysis found: its stored results, as a table and a figure."""

from collections.abc import Sequence
from pathlib import Path

import msgspec
import numpy as np

from colonnade.errors import InputError
from colonnade.ledger import aligned


class SmoothedResult(msgspec.Struct, frozen=True):
    """One data set, perturbed once.

    Parameters
    ----------
    noise : float
        r: the perturbation's deviation over the largest length of a row.
    repeat : int
        Which perturbation of this noise.
    gamma, gamma_bound : float
        The effective gamma, and the lemma's bound with columns of one length.
    zeta : float
        For regression.
    tau : float
        The best party's, by sampled pairs; infinite where it cannot tell rows apart.
    tau_rate : float
        1/r² + d / log² n: what Theorem B.4 says tau grows with; infinite without noise.
    regression_epsilon, clustering_epsilon : float
        A coreset's: the worst over all linear models, the worst over the centres tried.
    """

    noise: float
    repeat: int
    gamma: float
    gamma_bound: float
    zeta: float
    tau: float
    tau_rate: float
    regression_epsilon: float
    clustering_epsilon: float


def read_smoothed(path: Path) -> list[SmoothedResult]:
    """Read a results file: one JSON object a line, with infinities written as null."""
    try:
        lines = [msgspec.json.decode(line, type=dict[str, float | None]) for line in path.read_bytes().splitlines()]
        infinite = [{name: float("inf") if value is None else value for name, value in line.items()} for line in lines]
        return msgspec.convert(infinite, list[SmoothedResult], strict=False)
    except (OSError, msgspec.MsgspecError) as error:
        raise InputError(f"{path} is not a readable results file: {error}. Run the experiment again.") from error


def table(results: Sequence[SmoothedResult]) -> str:
    """Lay out the medians over repeats, one line a noise.

    With the quotients that the theorems bound: gamma / r from below, tau / (1/r² + d / log² n) from above.
    """
    header = ("noise r", "gamma", "gamma / r", "zeta", "epsilon", "tau", "tau / rate", "epsilon")
    lines = [header, ("", "", "", "", "regression", "", "", "k-means")]
    for noise in sorted({result.noise for result in results}):
        own = [result for result in results if result.noise == noise]
        gamma, tau = _median(own, "gamma"), _median(own, "tau")
        rate = _median(own, "tau_rate")
        lines.append(
            (
                f"{noise:g}",
                f"{gamma:.2g}",
                f"{gamma / noise:.2g}" if noise else "-",
                f"{_median(own, 'zeta'):,.3g}",
                f"{_median(own, 'regression_epsilon'):.1%}",
                f"{tau:,.3g}",
                f"{tau / rate:.2g}" if noise else "-",
                f"{_median(own, 'clustering_epsilon'):.1%}",
            )
        )
    return aligned(lines, numbers=range(8))


def figure(results: Sequence[SmoothedResult], path: Path) -> None:
    """Draw gamma and tau against the noise, with the coresets' epsilon beside them, into a .png file.

    At least one noise must be above zero; zero itself has no place on a logarithm.
    """
    from matplotlib.figure import Figure

    noises = sorted({result.noise for result in results} - {0.0})
    groups = [[result for result in results if result.noise == noise] for noise in noises]
    canvas = Figure(figsize=(11, 4.6), layout="constrained")
    left, right = canvas.subplots(1, 2)
    left.plot(noises, [_median(own, "gamma") for own in groups], "o-", label="gamma")
    left.plot(noises, noises, ":", color="grey", label="r, the rate of Theorem B.2")
    left.plot(
        noises, [_median(own, "regression_epsilon") for own in groups], "s--", label="epsilon of a coreset, worst"
    )
    right.plot(noises, [_median(own, "tau") for own in groups], "o-", label="tau")
    rates = [_median(own, "tau_rate") for own in groups]
    right.plot(noises, rates, ":", color="grey", label="1/r² + d/log² n, the rate of Theorem B.4")
    right.plot(noises, [_median(own, "clustering_epsilon") for own in groups], "s--", label="epsilon of a coreset")
    for axes, title in ((left, "regression"), (right, "k-means")):
        axes.set(xscale="log", yscale="log", title=title, xlabel="noise r")
        axes.grid(visible=True, which="both", alpha=0.2)
        axes.legend(frameon=False, fontsize=8)
    canvas.savefig(path, dpi=140)


def _median(results: Sequence[SmoothedResult], name: str) -> float:
    # Of an even number the lower of the middle two: a mean with an infinity would tell nothing.
    return float(np.quantile([getattr(result, name) for result in results], 0.5, method="lower"))
