"""What a party keeps for the steps of a classification, in memory only, and what it checks before there are any."""

from dataclasses import dataclass, field, replace

import numpy as np

from colonnade.errors import PolicyRefusedError
from colonnade.kernels.arrays import Floats
from colonnade.kernels.masks import WORD_BYTES, Ring, Words
from colonnade.ledger import SERVER
from colonnade.messages import Message
from colonnade.privacy.pair_keys import identity_of, phase_keys
from colonnade.privacy.pairwise import Secret, share_words
from colonnade.protocol import checks
from colonnade.protocol.session import PartyData, PartyState
from colonnade.protocol.sums import check_sums
from colonnade.signing import digest
from colonnade.solvers.gram.party import LEAST_ROWS
from colonnade.solvers.gram.question import GramQuestion
from colonnade.solvers.gram.shares.messages import matrix_words

# However many columns there are.
MOST_STEPS = 30
# Parts are from -1 to 1, and so many parties' sums do not wrap.
PARTS = Ring(WORD_BYTES, 52)
MOST_PARTIES = 1 << 10


@dataclass(frozen=True, eq=False)
class StepsKept:
    """What a party keeps.

    Parameters
    ----------
    keys, circle : tuple of bytes, tuple of int
        All parties', and the places of those that it shares secrets with.
    seed : bytes
        All parties', of which shares are made.
    directions : ndarray of float64, shape (m, c)
        The orthonormal basis of its own columns.
    done : int
        How many steps there were.
    shown, told : tuple of ndarray of float64, shape (m,)
        At the label party: what it was shown of the rows; and by which weights the sums are that were told of them.
    settings : bytes
        At the label party: a digest of what is minimised.
    """

    question: GramQuestion
    secret: Secret
    keys: tuple[bytes, ...]
    circle: tuple[int, ...]
    transcript: bytes
    seed: bytes
    directions: Floats
    done: int = 0
    shown: tuple[Floats, ...] = ()
    told: tuple[Floats, ...] = ()
    settings: bytes = b""
    last: tuple[Floats, Floats] | None = field(default=None)

    def __repr__(self) -> str:
        return "StepsKept(not shown)"

    @property
    def here(self) -> int:
        """The party's own place among all."""
        return self.keys.index(self.secret.key)

    def step_transcript(self) -> bytes:
        """Hash what this step's masks are for."""
        return digest(self.transcript, b"step", self.done.to_bytes(2))

    def column_mask(self) -> Words:
        """Stretch the seed to what the label party's column is shared by in this step, shape (1, 2, m)."""
        return matrix_words(share_words(self.seed, self.step_transcript()), self.question, range(1))

    def matrix_mask(self, place: int) -> Words:
        """Stretch the seed to what a party's basis was shared by, shape (c, 2, m)."""
        columns = self.question.columns_of(place)
        return matrix_words(share_words(self.seed, self.transcript), self.question, columns)


def steps_kept(state: PartyState, request: Message, step: int) -> StepsKept | None:
    """Give what the party keeps, if it still has it: after a restart it has not."""
    kept = phase_keys(state).kept
    if not isinstance(kept, StepsKept):
        return None
    if step != kept.done or kept.done >= kept.question.steps:
        raise checks.wrong(SERVER, request, f"step {step} where {kept.done} of {kept.question.steps} were done")
    return kept


def with_kept(state: PartyState, kept: StepsKept) -> PartyState:
    """Go on to the next step with this."""
    return replace(state, secret=replace(phase_keys(state), kept=replace(kept, done=kept.done + 1)))


def most_steps(n_others: int) -> int:
    """Say how many directions of so many columns of the others the label party may be shown.

    As many as there are columns would be the columns.
    """
    return min(MOST_STEPS, n_others - 1)


def check_steps(state: PartyState, question: GramQuestion, request: Message, data: PartyData) -> PartyState:
    """Check how many steps there are to be, and count what they will tell."""
    identity = identity_of(data)
    if question.to not in identity.parties or (question.to == identity.name) != (data.table.label_name is not None):
        raise checks.wrong(SERVER, request, f"{question.to!r} in place of the label party")
    others = sum(question.n_columns) - question.n_columns[identity.parties.index(question.to)]
    if not 1 <= question.steps <= most_steps(others) or len(identity.parties) > MOST_PARTIES:
        raise checks.wrong(SERVER, request, f"{question.steps} steps, where the others have {others} columns in all")
    is_label_party = question.to == identity.name
    ours = 1 if is_label_party else len(data.table.feature_names)
    numbers = question.steps * (others + 2 if is_label_party else ours)
    most = data.policy.models_of(ours)
    if not is_label_party and most is not None and question.steps > most:
        raise PolicyRefusedError(
            f"its owner's policy applies {most:,} models in all for others to learn what comes of them, and each of "
            f"{question.steps} steps is one. Use SecureGram(steps={most}), or ask its owner.",
            party=data.name,
        )
    if not ours:
        return state
    # Run by run: the same question in another run can come with other directions.
    what = f"the gradients of run {digest(state.run_nonce, state.sheet).hex()}"
    groups = [(question.rows, question.row_weights())]
    return check_sums(state, data, what, groups, ours, numbers, LEAST_ROWS, of_each=-(-numbers // ours))


def sqrt_weights(question: GramQuestion) -> Floats:
    """Give the square roots of the rows' weights, shape (m,)."""
    roots: Floats = np.sqrt(question.row_weights())
    return roots
