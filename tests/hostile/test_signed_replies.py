"""Hostile replies of a second make: a party that signs, masks and commits to its lies, or lies in one round only.

`test_replies` changes what travels; signatures then show it. Here the party itself answers by other tables, bends
numbers before they are signed, signs anew with old signatures, refuses, and replays. Whatever it does ends in an error
of ours that names it, or in a result that some table of its could have brought about (`replies_laws`).
"""

from collections.abc import Iterator
from functools import cache
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest

import colonnade as cn
from colonnade.messages import Message
from colonnade.protocol.session import PartySession
from hostile.replies_jobs import Job, all_jobs
from hostile.replies_laws import broken_laws
from hostile.replies_signed import Liar

pytestmark = pytest.mark.filterwarnings(
    "ignore::colonnade.ConvergenceWarning",
    "ignore::colonnade.AssumptionWarning",
    "ignore::colonnade.DisclosureWarning",
)
JOBS = {job.name: job for job in all_jobs()}
SELDOM = {"plan Regression": 10, "plan KMeans": 10}


def play(job: Job, liar: Liar) -> Any:
    """Play a job with a liar in it."""
    federation = cn.Federation(job.parties(), transport=liar)
    given = job.prepare(federation)
    liar.armed = True
    return job.play(federation, given)


@cache
def places(name: str) -> list[tuple[int, str]]:
    """List the rounds of a job, and who answers in each."""
    liar = Liar(JOBS[name])
    play(JOBS[name], liar)
    return [(number, party) for number, inbox in enumerate(liar.heard) for party in inbox]


def lies(seed: int, count: int) -> Iterator[tuple[Job, Liar]]:
    rng = np.random.default_rng([seed, 2])
    chances = np.array([SELDOM.get(name, 100) for name in JOBS], np.float64)
    for name in rng.choice(list(JOBS), size=count, p=chances / chances.sum()).tolist():
        number, party = places(name)[int(rng.integers(len(places(name))))]
        yield JOBS[name], Liar(JOBS[name], number, party, int(rng.integers(2**62)))


def complaint(job: Job, liar: Liar) -> str | None:
    """Say what is wrong with how a lie ended, if anything."""
    try:
        result = play(job, liar)
    except cn.ColonnadeError as error:
        if isinstance(error, cn.RemoteProtocolError) and error.party not in (None, liar.party):
            return f"{error.party} was named in its place: {error}"
        return None if liar.party in str(error) else f"it was not named: {type(error).__name__}: {error}"
    except Exception as error:  # any other is what we look for
        return f"{type(error).__name__}: {error}"
    broken = broken_laws(result, job, liar.party, liar.sessions)
    return "; ".join(broken) or None


@pytest.mark.parametrize(
    ("seed", "count"), [(0, 150), *(pytest.param(n, 500, marks=pytest.mark.slow(sampled=False)) for n in range(1, 9))]
)
def test_signed_lies_end_in_the_liars_name_or_change_no_more_than_false_data(seed: int, count: int) -> None:
    found = []
    for job, liar in lies(seed, count):
        if (what := complaint(job, liar)) is not None:
            found.append(f"{job.name}, {liar.party}, {liar.what}: {what}")
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("fit Regression, secure, central", "PublicKey"),
        ("fit Regression, plain, gram", "PairKey"),
        ("fit KMeans, plain, lloyd", "PairKey"),
        ("evaluate Regression, by", "PairKey"),
    ],
)
def test_a_key_that_gives_no_secret_is_laid_to_who_signed_it(name: str, kind: str) -> None:
    """A point of low order: with it the secret is known to all. The others refused it as the server's doing."""

    class WithoutSecret(Liar):
        def _lie(self, session: PartySession, request: Message) -> Message:
            with patch("colonnade.privacy.identities.RehearsedPair", lambda *_: SimpleNamespace(public=bytes(32))):
                return session.answer(request)

    honest = Liar(JOBS[name])
    play(JOBS[name], honest)
    (number, *_) = [at for at, inbox in enumerate(honest.heard) if "shop" in inbox and inbox["shop"].kind == kind]
    with pytest.raises(cn.RemoteProtocolError, match=r"'shop' sent a P.*Key with a key that gives no secret") as caught:
        play(JOBS[name], WithoutSecret(JOBS[name], number, "shop"))
    assert caught.value.party == "shop"
