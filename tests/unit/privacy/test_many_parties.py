"""Of many parties, what each does for a secure phase does not grow with their number."""

from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import colonnade as cn
from colonnade.privacy import pairwise
from colonnade.privacy.circles import NEAR

FEW, MANY = NEAR + 8, 2 * (NEAR + 8)
RIDGE = cn.Regression(l2=0.1)


def federation(count: int) -> cn.Federation:
    rng = np.random.default_rng(0)
    return cn.Federation(cn.split_columns(rng.normal(size=(300, count)), rng.normal(size=300), [1] * count))


def secure_sum(here: cn.Federation) -> None:
    here.coreset(RIDGE, cn.ImportanceSampling(150, scores="secure"), seed=1)


def masked_evaluation(here: cn.Federation) -> None:
    here.evaluate(cn.LinearModel(np.ones(len(here.roster.names)), 0.0, here.roster.feature_names), by="party2")


def gram_matrix(here: cn.Federation) -> None:
    rows = np.arange(300)
    here.fit(RIDGE, coreset=cn.Coreset(rows, np.ones(300), 300, 300.0), solver=cn.SecureGram())


def counted(play: Callable[[cn.Federation], None], count: int, monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Count masks, encrypted texts and checked signatures of a phase."""
    done: Counter[str] = Counter()
    for owner, name in (
        (pairwise.Secret, "stream"),
        (pairwise.Secret, "encrypt_for"),
        (pairwise, "key_statement"),
        (pairwise, "sent_statement"),
    ):
        original = getattr(owner, name)

        def counting(*given: Any, original: Any = original, name: str = name) -> Any:
            done[name] += 1
            return original(*given)

        monkeypatch.setattr(owner, name, counting)
    play(federation(count))
    monkeypatch.undo()
    return done


@pytest.mark.parametrize("play", [secure_sum, masked_evaluation])
def test_masks_and_signatures_are_of_neighbours(play: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    for count in (FEW, MANY):
        done = counted(play, count, monkeypatch)
        assert done["stream"] == NEAR * count
        assert done["key_statement"] == (NEAR + 1) * count
        # The one that evaluates checks what all others signed, too.
        others = count - 1 if play is masked_evaluation else 0
        assert done["sent_statement"] == (NEAR + 1) * count + others


def test_one_seed_is_dealt_for_a_gram_matrix(monkeypatch: pytest.MonkeyPatch) -> None:
    """The one that deals has checked all keys when it does, and again when it shares, and all signatures in the end."""
    for count in (FEW, MANY):
        done = counted(gram_matrix, count, monkeypatch)
        assert done["stream"] == 0
        assert done["encrypt_for"] == count - 1
        assert done["key_statement"] == 2 * count + 2 * (count - 1)
        assert done["sent_statement"] == count + 2 * (count - 1)
