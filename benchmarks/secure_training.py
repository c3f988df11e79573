"""What training without showing rows costs: Gram mode by shares and by CKKS, and encrypted gradient descent.

A coreset of 2,000 rows and 3 x 30 columns, least squares. Everything goes through the wire codec, in one process, so
that bytes are those of a network and seconds those of all parties one after another, of processor time. *Excess* is how
far the objective is above that of `Central`, relative to it.

Encrypted gradient descent is what the paper suggests for training: parties encrypt their parts of the predictions, the
label party adds them up to encrypted residuals, every party multiplies these by its columns and masks the result, and
the key's holder decrypts masked gradients. With full batches, Saga is the same. A few rounds are played and measured;
how many it takes to come within 1e-8 is counted in the clear, with the same steps. It stands here and not in the
library: no Gram matrix is told, but one round costs as much as all that Gram mode by shares sends, and it takes many.

    python benchmarks/secure_training.py [--json]
"""

import argparse
import json
import sys
import time
from dataclasses import asdict, dataclass

import numpy as np

import colonnade as cn
from colonnade.kernels.arrays import Floats
from colonnade.kernels.gram import local_basis
from colonnade.privacy.ckks import decrypt_products, encrypt_matrix, masked_products, new_key, unmasked
from colonnade.transports.loopback import Loopback

SIZE, WIDTHS = 2_000, [30, 30, 30]
GOAL = 1e-8
MEASURED_ROUNDS = 3


@dataclass(frozen=True)
class Measurement:
    """One way to learn: bytes both ways over all parties, rounds of keys and solving, seconds, and excess."""

    way: str
    bytes: int
    rounds: int
    seconds: float
    excess: float


@dataclass(frozen=True)
class Problem:
    """Parties, and the rows of their coreset in one place."""

    federation: cn.Federation
    coreset: cn.Coreset
    features: Floats
    labels: Floats


def make_problem() -> Problem:
    """Draw correlated, heavy-tailed columns, and a coreset of them."""
    rng = np.random.default_rng(0)
    X = rng.standard_t(4, size=(20_000, sum(WIDTHS))) @ (np.eye(90) + 0.05 * rng.normal(size=(90, 90))) + 5
    y = X @ rng.normal(size=90) + 10 * rng.normal(size=len(X))
    federation = cn.Federation(cn.split_columns(X, y, WIDTHS), transport=Loopback)
    coreset = federation.coreset(cn.Regression(), cn.ImportanceSampling(SIZE), seed=1).coreset
    return Problem(federation, coreset, X[coreset.rows], y[coreset.rows])


def measure_solver(problem: Problem, way: str, solver: cn.Central | cn.SecureGram, best: float | None) -> Measurement:
    """Learn by one solver of the library."""
    task, coreset = cn.Regression(), problem.coreset
    started = time.process_time()
    run = problem.federation.fit(task, coreset=coreset, solver=solver)
    seconds = time.process_time() - started
    solving = [entry for entry in run.ledger if entry.phase in ("keys", "solving")]
    n_bytes, rounds = sum(entry.bytes for entry in solving), len({entry.round for entry in solving})
    cost = task.cost(run.model, problem.features, problem.labels, coreset.weights, coreset.total_weight)
    return Measurement(way, n_bytes, rounds, seconds, cost if best is None else cost / best - 1)


def whitened(problem: Problem) -> tuple[list[Floats], Floats]:
    """Give each party's weighted columns in an orthonormal basis, and the weighted labels: steps of 1 / T are safe."""
    weights = problem.coreset.weights
    ends = np.cumsum(WIDTHS)
    bases = [local_basis(problem.features[:, end - 30 : end], weights).directions for end in ends]
    labels = local_basis(problem.labels[:, None], weights)
    return bases, labels.directions[:, 0]


def rounds_needed(bases: list[Floats], target: Floats) -> int:
    """Count rounds of gradient descent until the objective is within the goal of its minimum, in the clear."""
    joined = np.hstack(bases)
    minimum = float(np.linalg.lstsq(joined, target, rcond=None)[1][0])
    theta, n_rounds = np.zeros(joined.shape[1]), 0
    while True:
        residual = joined @ theta - target
        if residual @ residual <= minimum * (1 + GOAL):
            return n_rounds
        theta -= joined.T @ residual / len(bases)
        n_rounds += 1


def measure_descent(bases: list[Floats], target: Floats) -> Measurement:
    """Play a few encrypted rounds, check them against plain ones, and count what all of them would take."""
    rng = np.random.default_rng(0)
    key = new_key(rng.bytes(32))
    thetas, n_bytes, n_parties = [np.zeros(30) for _ in bases], 0, len(bases)
    started = time.process_time()
    for _ in range(MEASURED_ROUNDS):
        parts = [basis @ theta for basis, theta in zip(bases, thetas, strict=True)]
        plain = [
            theta - basis.T @ (sum(parts) - target) / n_parties for basis, theta in zip(bases, thetas, strict=True)
        ]
        sent = [encrypt_matrix(key, rng.bytes(32), part[:, None], rng.bytes(32)) for part in parts[:-1]]
        # Adding ciphertexts costs next to nothing: in place of their sum the sum is encrypted.
        public = rng.bytes(32)
        residual = encrypt_matrix(key, public, (sum(parts) - target)[:, None], rng.bytes(32))
        # To the label party through the server, and back to the others likewise: each message counts twice.
        n_bytes += 2 * sum(len(rows) for _, rows in sent) + 2 * (n_parties - 1) * sum(map(len, residual))
        for party, basis in enumerate(bases):
            products, masks = masked_products(residual, public, 1, basis, rng.bytes(32))
            sums = decrypt_products(key, products, 1)
            gradient = unmasked(sums.astype(np.float64), masks.astype(np.float64))[0]
            thetas[party] = thetas[party] - gradient / n_parties
            n_bytes += sum(map(len, products)) + masks.nbytes
        np.testing.assert_allclose(np.concatenate(thetas), np.concatenate(plain), atol=1e-7)
    seconds = (time.process_time() - started) / MEASURED_ROUNDS
    needed = rounds_needed(bases, target)
    # Four messages in a row make a round of descent: parts, residuals, masked gradients, gradients.
    return Measurement(
        "gradient descent, CKKS", needed * n_bytes // MEASURED_ROUNDS, 4 * needed, needed * seconds, GOAL
    )


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="Bytes and seconds of training without showing rows.")
    parser.add_argument("--json", action="store_true", help="print the measurements as JSON")
    options = parser.parse_args()
    problem = make_problem()
    central = measure_solver(problem, "Central (shows rows)", cn.Central(), None)
    best = central.excess
    found = [
        Measurement(central.way, central.bytes, central.rounds, central.seconds, 0.0),
        measure_solver(problem, "SecureGram, shares", cn.SecureGram(), best),
        measure_solver(problem, "SecureGram, CKKS", cn.SecureGram(products="ckks"), best),
        measure_descent(*whitened(problem)),
    ]
    if options.json:
        print(json.dumps([asdict(each) for each in found], indent=2))
        return 0
    print(f"{'':24}{'bytes':>16} {'rounds':>7} {'seconds':>9} {'excess':>9}")
    for each in found:
        print(f"{each.way:24}{each.bytes:>16,} {each.rounds:>7,} {each.seconds:>9.3f} {each.excess:>9.1e}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
