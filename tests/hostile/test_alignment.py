"""Servers that would learn keys or rows while records are matched, or make parties use what is no match."""

import dataclasses
import secrets
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from msgspec.structs import replace

import colonnade as cn
from alignment_trial import frames, parties
from colonnade.alignment import MODES, align
from colonnade.alignment.aided import AskPseudonyms, Pseudonyms
from colonnade.alignment.clear import AskKeys, KeysInClear
from colonnade.alignment.curve import AskPoints, MultiplyPoints, Points
from colonnade.alignment.listing import BLOCK_KEYS
from colonnade.alignment.meeting import AskKeyCard, KeyCard, meet
from colonnade.alignment.settling import AlignmentKept, KeepAlignment, Matched, TellMatches
from colonnade.alignment.shared_secret import (
    AskShareKey,
    DealSecret,
    DealtSecret,
    OpenSecret,
    SecretOpened,
    ShareKey,
    share_secret,
)
from colonnade.catalogue import codec
from colonnade.job_sheets import sheet_of
from colonnade.kernels.arrays import Flags
from colonnade.kernels.ristretto import hashed_to_points
from colonnade.kernels.tokens import in_all
from colonnade.ledger import SERVER
from colonnade.messages import Message, Reveals, sendable_flags
from colonnade.node.alignment_file import ALIGNMENT
from colonnade.privacy.identities import signing_key
from colonnade.privacy.primitives import KEY_BYTES
from colonnade.privacy.statements import SignedDigest, SignedKey
from colonnade.protocol.sheet import JobSheet
from colonnade.tasks.jobs import draw, learn
from hostile_trial import HostileServer, hostile_server, turned_away

NAMES = ("party0", "party1", "party2")
KEYS = [range(100), range(5, 105), range(2, 102)]
N_COMMON = 95
TASK, GRAM = cn.Regression(), cn.SecureGram()
USUAL = {"level": "usual"}


def open_alignment(server: HostileServer, mode: str, **changes: Any) -> dict[str, KeyCard]:
    """Meet, and open an alignment by a sheet, an honest one but for changes."""
    server.begin("hello")
    cards = server.play(meet(server.names, again=True))
    sheet = JobSheet(verb="align", parties=tuple(card.party for card in cards.values()), rows=0, align=mode)
    server.open(replace(sheet, **changes))
    return cards


def with_secret(server: HostileServer, mode: str) -> dict[str, KeyCard]:
    cards = open_alignment(server, mode)
    server.play(share_secret(NAMES))
    return cards


def aligned(server: HostileServer, mode: str) -> None:
    """Align honestly."""
    server.play(align(mode, open_alignment(server, mode)))


def greet(server: HostileServer) -> None:
    """Learn by which alignment the parties go."""
    server.greet()
    server.begin("hello")
    (found,) = {card.alignment for card in server.play(meet(server.names, again=False)).values()}
    assert found is not None
    server.roster = dataclasses.replace(server.roster, alignment=found.hex())


def first_points(server: HostileServer) -> dict[str, Points]:
    """Let every party multiply its own list."""
    with_secret(server, "curve")
    return server.told_by_all_of(NAMES, AskPoints(0), Points)


def kept_by(folder: Path) -> list[str]:
    return sorted(path.parent.name for path in folder.rglob(ALIGNMENT))


def multiply(owner: str, hop: int, told: Points, **changes: Any) -> MultiplyPoints:
    return replace(MultiplyPoints(owner, hop, 0, told.points, told.signature), **changes)


# What a server asks in place of an honest MultiplyPoints of party1, to whom party0's list goes first: and why not.
UNSIGNED = "brought points of 'party0' that 'party0' did not sign: it may have put guesses among them"
NOT_YOURS = "brought points that are another party's to multiply"
NO_BLOCK = "asked for a block of keys at .*, where none starts"
GUESSES = hashed_to_points(secrets.token_bytes(64 * 100))
MULTIPLICATIONS: dict[str, tuple[str, Callable[[dict[str, Points]], MultiplyPoints], str]] = {
    "guesses": ("party1", lambda told: multiply("party0", 1, told["party0"], points=GUESSES), UNSIGNED),
    "a guess among them": (
        "party1",
        lambda told: multiply("party0", 1, told["party0"], points=GUESSES[:32] + told["party0"].points[32:]),
        UNSIGNED,
    ),
    "unsigned": ("party1", lambda told: multiply("party0", 1, told["party0"], signature=bytes(64)), UNSIGNED),
    "cut": ("party1", lambda told: multiply("party0", 1, told["party0"], points=told["party0"].points[:32]), UNSIGNED),
    "nothing": ("party1", lambda told: multiply("party0", 1, told["party0"], points=b""), UNSIGNED),
    "repeated": (
        "party1",
        lambda told: multiply("party0", 1, told["party0"], points=told["party0"].points[:32] * 100),
        UNSIGNED,
    ),
    "swapped": (
        "party1",
        lambda told: multiply("party0", 1, told["party0"], points=told["party0"].points[32:] + GUESSES[:32]),
        UNSIGNED,
    ),
    "of another block": ("party1", lambda told: multiply("party0", 1, told["party0"], start=BLOCK_KEYS), UNSIGNED),
    "of another owner": ("party1", lambda told: multiply("party0", 1, told["party2"]), UNSIGNED),
    "said to be another's": (
        "party1",
        lambda told: multiply("party2", 2, told["party0"]),
        "points of 'party2' that 'party0' did not sign",
    ),
    "one hop ahead": (
        "party2",
        lambda told: multiply("party0", 2, told["party0"]),
        "points of 'party0' that 'party1' did not sign",
    ),
    "to its owner": ("party0", lambda told: multiply("party0", 0, told["party0"]), NOT_YOURS),
    "to its owner, at the end": ("party0", lambda told: multiply("party0", 3, told["party0"]), NOT_YOURS),
    "to who comes after the next": ("party2", lambda told: multiply("party0", 1, told["party0"]), NOT_YOURS),
    "round and round": ("party1", lambda told: multiply("party0", 4, told["party0"]), NOT_YOURS),
    "before the first hop": ("party1", lambda told: multiply("party0", -2, told["party0"]), NOT_YOURS),
    "a hop without end": ("party1", lambda told: multiply("party0", 3 * 2**62 + 1, told["party0"]), NOT_YOURS),
    "of nobody": ("party1", lambda told: multiply("nobody", 1, told["party0"]), NOT_YOURS),
    "of the server": ("party1", lambda told: multiply(SERVER, 1, told["party0"]), NOT_YOURS),
    "from before the list": ("party1", lambda told: multiply("party0", 1, told["party0"], start=-BLOCK_KEYS), NO_BLOCK),
    "from within a block": ("party1", lambda told: multiply("party0", 1, told["party0"], start=1), NO_BLOCK),
    "from beyond all lists": ("party1", lambda told: multiply("party0", 1, told["party0"], start=2**63), NO_BLOCK),
}


@pytest.fixture(scope="module")
def town(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """One server and three parties for attacks that leave nothing behind but a run that is over."""
    folder = tmp_path_factory.mktemp("town")
    policy = {"level": "usual", "align": ["clear", "aided", "curve"], "requests_a_minute": 100_000}
    with hostile_server(folder, parties(frames(KEYS)), policy, are_aligned=False) as server:
        yield server


@pytest.mark.parametrize("name", MULTIPLICATIONS)
def test_nobody_multiplies_what_is_not_the_next_signed_list(town: HostileServer, name: str) -> None:
    party, made, why = MULTIPLICATIONS[name]
    told = first_points(town)
    turned_away(lambda: town.told(party, made(told), Points), why)


def test_a_signature_is_of_one_alignment(town: HostileServer) -> None:
    """The sheets of two alignments are the same: an old list would be multiplied by a new secret."""
    old = first_points(town)
    first_points(town)
    turned_away(lambda: town.told("party1", multiply("party0", 1, old["party0"]), Points), UNSIGNED)


def test_a_list_that_all_have_multiplied_is_at_its_end(town: HostileServer) -> None:
    told = first_points(town)["party0"]
    for hop, bearer in ((1, "party1"), (2, "party2")):
        told = town.told(bearer, multiply("party0", hop, told), Points)
    turned_away(lambda: town.told("party0", multiply("party0", 3, told), Points), NOT_YOURS)


ASKED: dict[str, Callable[[int], Message]] = {"clear": AskKeys, "aided": AskPseudonyms, "curve": AskPoints}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("start", [-1, -BLOCK_KEYS, 1, 100, BLOCK_KEYS, 2**40, 2**63])
def test_a_list_is_asked_for_by_its_blocks(town: HostileServer, mode: str, start: int) -> None:
    with_secret(town, mode)
    turned_away(lambda: town.told("party1", ASKED[mode](start), Message), NO_BLOCK)


@pytest.mark.parametrize("mode", MODES)
def test_a_list_that_is_asked_for_twice_is_the_same(town: HostileServer, mode: str) -> None:
    with_secret(town, mode)
    first, second = (town.told("party1", ASKED[mode](0), Message) for _ in range(2))
    assert codec().encode(first) == codec().encode(second)


@pytest.mark.parametrize("mode", MODES)
def test_modes_are_not_mixed(town: HostileServer, mode: str) -> None:
    """Pseudonyms in one run and keys in it, too."""
    with_secret(town, mode)
    for other, asked in ASKED.items():
        if other != mode:
            turned_away(partial(town.told, "party1", asked(0), Message), "would be next in this job, not Ask")


@pytest.mark.parametrize("mode", MODES)
def test_nothing_is_listed_before_a_secret_is_shared(town: HostileServer, mode: str) -> None:
    open_alignment(town, mode)
    turned_away(lambda: town.told("party1", ASKED[mode](0), Message), "AskShareKey would be next in this job")


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"align": "aided", "run_by": "party0"}, "party0 runs the server, and with the parties' secret it could try"),
        ({"align": "hash"}, "a job sheet aligns by 'hash', which is none of clear, aided, curve"),
        ({"align": None}, "a job sheet that aligns records, and is for something else"),
        ({"rows": 95}, "columns or rows are not as they are"),
    ],
)
def test_an_alignment_is_opened_by_an_honest_sheet(town: HostileServer, changes: dict[str, Any], why: str) -> None:
    turned_away(lambda: open_alignment(town, "aided", **changes), why)


@pytest.mark.parametrize("rows", [0, N_COMMON])
def test_only_an_alignment_is_judged_as_one(tmp_path: Path, rows: int) -> None:
    """A sheet of another job that says `align`, too, passed by what the owner's policy has against that job."""
    with hostile_server(tmp_path, parties(frames(KEYS)), {"level": "strict"}, are_aligned=False) as server:
        aligned(server, "curve")
        greet(server)
        fitting = {"task": cn.Regression(), "sampler": cn.AllRows(), "solver": cn.Central(), "seed": 0}
        sheet = sheet_of("fit", fitting, server.roster, None)
        turned_away(lambda: server.open(sheet), "its owner's policy")
        why = "a job sheet that aligns records, and is for something else"
        turned_away(lambda: server.open(replace(sheet, align="curve", rows=rows)), why)


@pytest.mark.parametrize("level", ["usual", "strict"])
def test_keys_in_the_clear_are_refused_by_the_usual_policy(tmp_path: Path, level: str) -> None:
    with hostile_server(tmp_path, parties(frames(KEYS)), {"level": level}, are_aligned=False) as server:
        turned_away(lambda: open_alignment(server, "clear"), "allows the alignments aided, curve")
        turned_away(lambda: server.told("party1", AskKeys(0), KeysInClear), "OpenJob would be next|run")
        assert Reveals.KEYS not in server.disclosed()


@pytest.mark.parametrize("policy", [{"never": ["matches"]}, {"phases": ["sampling"]}, {"align": []}])
def test_an_owner_may_never_align(tmp_path: Path, policy: dict[str, object]) -> None:
    with hostile_server(tmp_path, parties(frames(KEYS)), {**USUAL, **policy}, are_aligned=False) as server:
        turned_away(lambda: open_alignment(server, "curve"), "its owner's policy (never|allows)")


# The shared secret: what the server puts in place of what it relays.
def a_key_of_its_own(server: HostileServer) -> None:
    """The server between dealer and party: its own key as the dealer's."""
    keys = shared_keys(server)
    server.told("party1", DealSecret((SignedKey(own_key(), b"", keys[0].signature), *keys[1:])), DealtSecret)


def a_signed_key_of_its_own(server: HostileServer) -> None:
    keys = shared_keys(server)
    server.told("party1", DealSecret((SignedKey(own_key(), b"", server._identity.sign(b"x")), *keys[1:])), DealtSecret)


def one_key_for_two(server: HostileServer) -> None:
    keys = shared_keys(server)
    server.told("party1", DealSecret((keys[0], keys[1], keys[0])), DealtSecret)


def fewer_keys(server: HostileServer) -> None:
    """A secret among two of three."""
    server.told("party1", DealSecret(shared_keys(server)[:2]), DealtSecret)


def an_old_key_of_the_party(server: HostileServer) -> None:
    old = shared_keys(server)
    keys = shared_keys(server)
    server.told("party1", DealSecret((keys[0], old[1], keys[2])), DealtSecret)


def an_old_key_of_the_dealer(server: HostileServer) -> None:
    """Its signature is good: all alignments have the same sheet. But what is sealed by it cannot be opened."""
    old = shared_keys(server)
    keys = shared_keys(server)
    dealt = server.told("party0", DealSecret(keys), DealtSecret)
    server.told("party1", DealSecret((old[0], *keys[1:])), DealtSecret)
    server.told("party1", OpenSecret(dealt.sealed[0]), SecretOpened)


def swapped_texts(server: HostileServer) -> None:
    server.told("party1", OpenSecret(dealt_secrets(server)[1]), SecretOpened)


def an_old_text(server: HostileServer) -> None:
    old = dealt_secrets(server)
    dealt_secrets(server)
    server.told("party1", OpenSecret(old[0]), SecretOpened)


def no_text(server: HostileServer) -> None:
    dealt_secrets(server)
    server.told("party1", OpenSecret(b""), SecretOpened)


def own_key() -> bytes:
    return signing_key(secrets.token_bytes(KEY_BYTES))


def shared_keys(server: HostileServer) -> tuple[SignedKey, ...]:
    open_alignment(server, "aided")
    told = server.told_by_all_of(NAMES, AskShareKey(), ShareKey)
    return tuple(SignedKey(told[name].key, b"", told[name].signature) for name in NAMES)


def dealt_secrets(server: HostileServer) -> tuple[bytes, ...]:
    keys = shared_keys(server)
    return server.told_by_all_of(NAMES, DealSecret(keys), DealtSecret)["party0"].sealed


@pytest.mark.parametrize(
    ("attack", "why"),
    [
        (a_key_of_its_own, "relayed a key for 'party0' that 'party0' did not sign"),
        (a_signed_key_of_its_own, "relayed a key for 'party0' that 'party0' did not sign"),
        (one_key_for_two, "relayed a key for 'party2' that 'party2' did not sign"),
        (fewer_keys, "relayed 2 keys, but its owner pinned 3 parties"),
        (an_old_key_of_the_party, "relayed another key of this party than its own"),
        (an_old_key_of_the_dealer, "an encrypted text of 'party0' that was changed on the way"),
        (swapped_texts, "an encrypted text of 'party0' that was changed on the way"),
        (an_old_text, "an encrypted text of 'party0' that was changed on the way"),
        (no_text, "an encrypted text of 'party0' that was changed on the way"),
    ],
)
def test_the_server_does_not_come_between(
    town: HostileServer, attack: Callable[[HostileServer], None], why: str
) -> None:
    turned_away(lambda: attack(town), why)


# Flags: what the server says all have.
def listed(server: HostileServer) -> dict[str, bytes]:
    """Give all pseudonyms."""
    with_secret(server, "aided")
    return {name: each.tokens for name, each in server.told_by_all_of(NAMES, AskPseudonyms(0), Pseudonyms).items()}


def flags(lists: dict[str, bytes], without: int = 0) -> dict[str, Flags]:
    """Mark what all have, but for the last so many of these, the same at all."""
    common = dict(zip(lists, in_all(list(lists.values()), 16), strict=True))
    tokens = sorted(tokens_of(lists[NAMES[0]], common[NAMES[0]]))
    left_out = tokens[len(tokens) - without :]
    return {
        name: np.array(
            [mark and token not in left_out for mark, token in zip(common[name], tokens_of(own), strict=True)]
        )
        for name, own in lists.items()
    }


def tokens_of(listed: bytes, marks: Sequence[bool] | Flags | None = None) -> list[bytes]:
    every = [listed[start : start + 16] for start in range(0, len(listed), 16)]
    return every if marks is None else [token for token, mark in zip(every, marks, strict=True) if mark]


def tell(server: HostileServer, marks: dict[str, Flags]) -> dict[str, Matched]:
    return server.told_by_each({name: TellMatches(sendable_flags(each)) for name, each in marks.items()}, Matched)


def keep(server: HostileServer, told: dict[str, Matched]) -> None:
    server.told_by_all_of(NAMES, keep_request(told), AlignmentKept)


def keep_request(told: dict[str, Matched], names: Sequence[str] = NAMES) -> KeepAlignment:
    return KeepAlignment(tuple(SignedDigest(told[name].digest, told[name].signature) for name in names))


@pytest.mark.parametrize("lie", ["fewer", "another", "another, and its neighbour's digest"])
def test_parties_that_are_told_different_matches_keep_nothing(tmp_path: Path, lie: str) -> None:
    """One row fewer at one; one row in place of another; and the digest of another in place of its own."""
    with hostile_server(tmp_path, parties(frames(KEYS)), are_aligned=False) as server:
        marks = flags(listed(server))
        own = marks["party1"]
        own[np.flatnonzero(own)[0]], own[np.flatnonzero(~own)[-1]] = False, lie != "fewer"
        told = tell(server, marks)
        relayed = {**told, "party1": told["party0"]} if "neighbour" in lie else told
        why = "relayed a digest that 'party1' did not sign|were told different common keys"
        for party in NAMES:
            turned_away(partial(server.told, party, keep_request(relayed), AlignmentKept), why)
        assert kept_by(tmp_path) == []
        server.begin()
        cards = server.told_by_all_of(NAMES, AskKeyCard(again=False), KeyCard)
        assert {card.alignment for card in cards.values()} == {None}


@pytest.mark.parametrize("n_signed", [0, 2, 4])
def test_every_party_has_signed_what_is_kept(town: HostileServer, n_signed: int) -> None:
    request = keep_request(tell(town, flags(listed(town))), (*NAMES, "party0")[:n_signed])
    turned_away(lambda: town.told("party1", request, AlignmentKept), f"{n_signed} signatures for 3")


def test_too_few_matches_are_not_used(town: HostileServer) -> None:
    """Nine rows that the server chose, where sums are over ten."""
    marks = flags(listed(town), without=N_COMMON - 9)
    assert marks["party1"].sum() == 9
    turned_away(lambda: tell(town, marks), "10 rows at least")


def test_there_are_as_many_marks_as_keys(town: HostileServer) -> None:
    for n_marks in (0, 99, 101):
        listed(town)
        request = TellMatches(sendable_flags(np.ones(n_marks, np.bool_)))
        turned_away(partial(town.told, "party1", request, Matched), f"{n_marks} marks for 100 keys")


def test_matches_are_told_once(town: HostileServer) -> None:
    """Else a server would try, set by set, which rows are which."""
    marks = flags(listed(town))
    tell(town, marks)
    marks["party1"][np.flatnonzero(marks["party1"])[0]] = False
    turned_away(lambda: tell(town, {"party1": marks["party1"]}), "KeepAlignment would be next in this job")


def test_keys_that_are_compared_are_counted(tmp_path: Path) -> None:
    """A party that joins forces lists guesses; each costs every other party a key of its day."""
    with hostile_server(tmp_path, parties(frames(KEYS)), {**USUAL, "keys_a_day": 350}, are_aligned=False) as server:
        aligned(server, "curve")
        turned_away(lambda: aligned(server, "curve"), "keys compared")
        counted = [line["keys"] for line in server.log_of("party1") if line["event"] == "answered"]
        assert sum(counted) <= 350


# Sums over nearly the same rows: a server that chooses which rows are common.
def fit(server: HostileServer) -> None:
    greet(server)
    server.honestly(
        learn(TASK, cn.AllRows(), GRAM, None, server.roster, 0), "fit", task=TASK, sampler=cn.AllRows(), solver=GRAM
    )


def align_without(server: HostileServer, n_rows: int) -> None:
    """Say that so many rows, those of the last pseudonyms, are not common; they are others each time."""
    keep(server, tell(server, flags(listed(server), without=n_rows)))


APART = "rows apart from a sum that it has told before"


def test_an_alignment_less_a_row_does_not_tell_the_row(tmp_path: Path) -> None:
    """Positions are others after each alignment, and so are pseudonyms; a row is known by its key for all time."""
    with hostile_server(tmp_path, parties(frames(KEYS)), USUAL, are_aligned=False) as server:
        align_without(server, 0)
        fit(server)
        for n_rows in (1, 9):
            align_without(server, n_rows)
            turned_away(lambda: fit(server), APART)
        align_without(server, 0)
        fit(server)  # the same rows, in another order, are the same sums


def shuffled(table: pd.DataFrame, seed: int) -> pd.DataFrame:
    return table.sample(frac=1.0, random_state=seed).reset_index(drop=True)


def test_nor_after_a_restart_with_the_table_sorted_otherwise_and_rows_added(tmp_path: Path) -> None:
    tables = frames(KEYS)
    with hostile_server(tmp_path, parties(tables), USUAL, are_aligned=False) as server:
        align_without(server, 0)
        fit(server)
    tables = {name: shuffled(table, 1) for name, table in tables.items()}
    with hostile_server(tmp_path, parties(tables), USUAL, are_aligned=False) as server:
        fit(server)  # the alignment that was kept, and the same sums
        align_without(server, 1)
        turned_away(lambda: fit(server), APART)
    more = {
        name: shuffled(pd.concat([table, table.iloc[:3].assign(id=[500, 501, 502])], ignore_index=True), 2)
        for name, table in tables.items()
    }
    with hostile_server(tmp_path, parties(more), USUAL, are_aligned=False) as server:
        turned_away(server.greet, "3 are new, and 0 are gone")
        aligned(server, "curve")
        turned_away(lambda: fit(server), "3 " + APART)
    back = {name: shuffled(table, 3) for name, table in tables.items()}
    with hostile_server(tmp_path, parties(back), USUAL, are_aligned=False) as server:
        turned_away(server.greet, "0 are new, and 3 are gone")
        aligned(server, "aided")
        fit(server)


def test_rows_are_scored_for_few_alignments(tmp_path: Path) -> None:
    """Scores among rows that the server chose are other quadratic forms of the same rows: attack 46, by alignments."""
    strict = {"level": "strict", "least_rows": 10}
    sampler = cn.ImportanceSampling(20, scores="secure")

    def score(*without: int) -> None:
        for n_rows in without:
            align_without(server, n_rows)
            greet(server)
            script = draw(TASK, sampler, None, server.roster, 0)
            server.honestly(script, "coreset", task=TASK, sampler=sampler, seed=0)

    with hostile_server(tmp_path, parties(frames(KEYS)), strict, are_aligned=False) as server:
        score(0, 0)  # the same rows in another order: one way
        turned_away(lambda: score(4, 8, 12), "different splits, for all time")
