"""The server's side of Gram mode by homomorphic encryption: it relays ciphertexts, and learns the sums of products.

Of each pair the party with the earlier name encrypts its rows, in an orthonormal basis; the other multiplies them by
its own and masks the products; the first decrypts. Both tell the server: one the masked products, the other the masks.
No two of the three, if they are curious only, have more together than the rows of one of them and the Gram matrix.
"""

from collections.abc import Mapping, Sequence
from itertools import combinations

import numpy as np

from colonnade.contracts import Roster, Script
from colonnade.coreset import Coreset
from colonnade.kernels.arrays import Floats
from colonnade.kernels.gram import Summary
from colonnade.messages import Message
from colonnade.privacy.circles import ALL
from colonnade.privacy.ckks import ERROR, WORD_BITS, is_ciphertext, n_ciphertexts, unmasked
from colonnade.privacy.pair_keys import LostKey, RelayedKeys, compare, exchange_keys, until_kept
from colonnade.privacy.statements import SignedDigest
from colonnade.protocol import checks
from colonnade.solvers.gram.ckks.messages import (
    PURPOSE,
    AskDecryptedProducts,
    AskEncryptedProducts,
    AskEncryptedRows,
    DecryptedProducts,
    EncryptedProducts,
    EncryptedRows,
    sent_digest,
)
from colonnade.solvers.gram.moments import GramMoments, senseless, summary
from colonnade.solvers.gram.question import GramQuestion, question_of

# The error of a product, as its effect on the spectrum of the products: see `kernels.gram`.
DEPENDENT = 16 * ERROR
SLACK = 1e-3


def gram_by_ckks(roster: Roster, coreset: Coreset) -> Script[list[Summary]]:
    """Learn the moments of the coreset's columns, features as in the roster, the label last; nothing of single rows."""
    question = question_of(roster, coreset, None)
    moments, products = yield from until_kept(lambda: _attempt(roster, question))
    largest = float(coreset.weights.max())
    return [summary(roster, moments, products, float(coreset.weights.sum()), largest, DEPENDENT)]


def _attempt(roster: Roster, question: GramQuestion) -> Script[tuple[Mapping[str, GramMoments], Floats] | LostKey]:
    keys = yield from exchange_keys(roster, question.rows)
    n_columns = dict(zip(keys.parties, question.n_columns, strict=True))
    request = AskEncryptedRows(question.weights, question.n_columns, keys.to(keys.parties[0], ALL))
    inbox = yield dict.fromkeys(roster.names, request)
    rows = checks.replies(inbox, EncryptedRows)
    for party, reply in rows.items():
        if not reply.signature:
            return LostKey(party)
        _check_rows(party, reply, question, keys, n_columns[party])

    inbox = yield {party: _relayed_rows(party, rows, keys.parties) for party in roster.names}
    multiplied = checks.replies(inbox, EncryptedProducts)
    for party, product in multiplied.items():
        if not product.has_key:
            return LostKey(party)
        _check_products(party, product, keys.parties, n_columns)

    inbox = yield {party: _relayed_products(party, multiplied, keys.parties) for party in roster.names}
    decrypted = checks.replies(inbox, DecryptedProducts)
    for party, told in decrypted.items():
        if not told.signature:
            return LostKey(party)
    transcript = question.transcript(keys.parties, keys.keys, keys.view, PURPOSE)
    signed = {p: _read_signed(p, rows[p], multiplied[p], decrypted[p], transcript, n_columns) for p in keys.parties}
    yield from compare(roster, transcript, signed, ALL)
    moments = {party: GramMoments(reply.mean, reply.factor) for party, reply in rows.items()}
    return moments, _unmasked(multiplied, decrypted, keys.parties, n_columns)


def _check_rows(party: str, reply: EncryptedRows, question: GramQuestion, keys: RelayedKeys, n_columns: int) -> None:
    checks.shape(party, reply, reply.mean, (n_columns,))
    checks.shape(party, reply, reply.factor, (n_columns, n_columns))
    checks.in_range(party, reply, reply.mean)
    checks.in_range(party, reply, reply.factor)
    due = 0 if party == keys.parties[-1] else n_ciphertexts(len(question.rows), n_columns)
    if len(reply.ciphertexts) != due or not all(map(is_ciphertext, reply.ciphertexts)):
        raise checks.wrong(party, reply, f"something else than the {due} ciphertexts that are due")


def _check_products(party: str, reply: EncryptedProducts, parties: Sequence[str], n_columns: Mapping[str, int]) -> None:
    earlier = [other for other in parties if other < party]
    due = [n_columns[party] if n_columns[other] else 0 for other in earlier]
    if [len(each) for each in reply.products] != due or len(reply.signatures) != len(earlier):
        raise checks.wrong(party, reply, f"products of other columns than {due}")
    for other, ciphertexts in zip(earlier, reply.products, strict=True):
        if not all(is_ciphertext(each, n_columns[other]) for each in ciphertexts):
            raise checks.wrong(party, reply, f"something else than ciphertexts of products with {other!r}")
    _check_words(party, reply, reply.masks, n_columns[party] * sum(n_columns[other] for other in earlier))


def _check_words(party: str, reply: Message, words: Floats, count: int) -> None:
    checks.shape(party, reply, words, (count,))
    if not ((words >= 0) & (words < 1 << WORD_BITS) & (words == np.floor(words))).all():
        raise checks.wrong(party, reply, f"numbers that are not whole ones of {WORD_BITS} bits")


def _relayed_rows(party: str, rows: Mapping[str, EncryptedRows], parties: Sequence[str]) -> AskEncryptedProducts:
    earlier = [rows[other] for other in parties if other < party]
    return AskEncryptedProducts(
        tuple(reply.ciphertexts for reply in earlier), tuple(reply.signature for reply in earlier)
    )


def _relayed_products(
    party: str, multiplied: Mapping[str, EncryptedProducts], parties: Sequence[str]
) -> AskDecryptedProducts:
    place, later = parties.index(party), [multiplied[other] for other in parties if other > party]
    return AskDecryptedProducts(
        tuple(reply.products[place] for reply in later), tuple(reply.signatures[place] for reply in later)
    )


def _read_signed(
    party: str,
    rows: EncryptedRows,
    multiplied: EncryptedProducts,
    decrypted: DecryptedProducts,
    transcript: bytes,
    n_columns: Mapping[str, int],
) -> SignedDigest:
    later = sum(n_columns[other] for other in n_columns if other > party)
    _check_words(party, decrypted, decrypted.sums, n_columns[party] * later)
    if decrypted.transcript != transcript:
        raise checks.wrong(party, decrypted, "a digest of another request than it was sent")
    return SignedDigest(sent_digest(rows.mean, rows.factor, multiplied.masks, decrypted.sums), decrypted.signature)


def _unmasked(
    multiplied: Mapping[str, EncryptedProducts],
    decrypted: Mapping[str, DecryptedProducts],
    parties: Sequence[str],
    n_columns: Mapping[str, int],
) -> Floats:
    """Take the masks from the masked products; shape (c, c), above the parties' own blocks, in the order of names."""
    masks = {
        p: iter(_cut(multiplied[p].masks, [(n_columns[o], n_columns[p]) for o in parties if o < p])) for p in parties
    }
    sums = {p: iter(_cut(decrypted[p].sums, [(n_columns[p], n_columns[o]) for o in parties if o > p])) for p in parties}
    ends = dict(zip(parties, np.cumsum([n_columns[party] for party in parties]).tolist(), strict=True))
    columns = {party: slice(end - n_columns[party], end) for party, end in ends.items()}
    found = np.zeros((sum(n_columns.values()), sum(n_columns.values())))
    for first, second in combinations(parties, 2):
        block = unmasked(next(sums[first]), next(masks[second]))
        if not (np.abs(block) <= 1 + SLACK).all():
            raise senseless(first, second)
        found[columns[first], columns[second]] = block
    return found


def _cut(numbers: Floats, shapes: Sequence[tuple[int, int]]) -> list[Floats]:
    ends = np.cumsum([rows * columns for rows, columns in shapes], dtype=np.int64)
    return [numbers[end - r * c : end].reshape(r, c) for end, (r, c) in zip(ends.tolist(), shapes, strict=True)]
