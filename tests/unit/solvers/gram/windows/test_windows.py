"""Gram mode of all rows in windows: the same model, nothing told before the last, and no window but these."""

import tracemalloc
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import colonnade as cn
from colonnade.catalogue import codec
from colonnade.contracts import Agreed, PartyCard, Roster
from colonnade.data import large_files
from colonnade.data.streamed_tables import StreamedTable
from colonnade.kernels import selections
from colonnade.kernels.arrays import Floats
from colonnade.kernels.block_basis import all_directions, block_basis
from colonnade.kernels.blocks import BLOCK_ROWS, n_blocks_of
from colonnade.kernels.selections import CountedRows
from colonnade.kernels.shares import LOW_BITS, from_limbs, limb_products, to_limbs
from colonnade.messages import Message, sendable_floats
from colonnade.privacy.identities import identities_here
from colonnade.privacy.pair_keys import AskPairAgreement, AskPairKey
from colonnade.privacy.statements import CircleKeys
from colonnade.routes import Route
from colonnade.solvers.gram import question
from colonnade.solvers.gram.shares.messages import AskGramShares, AskSealedSeeds, GramShares
from colonnade.solvers.gram.shares.server import read_products
from colonnade.solvers.gram.windows import messages
from colonnade.solvers.gram.windows import server as windows_server
from colonnade.solvers.gram.windows.messages import (
    AskGramBlocks,
    AskGramWindows,
    AskWindowShare,
    WindowShare,
    window_transcript,
)
from colonnade.tasks.jobs import learn
from colonnade.transports.inprocess import InProcess
from colonnade.transports.loopback import Loopback
from computed_table import computed_federation
from harness import play
from secure_trial import Entropy, Recording, Restarting, Wire, flip_message, float_forms, numbers_in

N = 2 * BLOCK_ROWS + 1000
RNG = np.random.default_rng(0)
X = RNG.standard_t(4, size=(N, 4)) + np.array([1e3, 0.0, 0.0, 5.0])
Y = X @ [1.0, -2.0, 0.5, 0.0] + RNG.normal(size=N)
WEIGHTS = RNG.integers(0, 4, size=N).astype(float)
MARKS = RNG.random(N) < 0.3
GRAM, RIDGE, ALL = cn.SecureGram(), cn.Regression(l2=0.1), cn.AllRows()


def parties(*, weighted: bool = False, values: Floats = X) -> list[cn.Party]:
    return [
        cn.Party("first", values[:, :2], weight=WEIGHTS if weighted else None),
        cn.Party("second", values[:, 2:3], split=MARKS),
        cn.Party("third", values[:, 3:], label=Y),
    ]


def federation(transport: Any = InProcess, **options: Any) -> cn.Federation:
    return cn.Federation(parties(**options), transport=transport)


@pytest.fixture(autouse=True)
def small_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Share few rows at once, and one block in a window."""
    monkeypatch.setattr(question, "AT_ONCE", 1000)
    monkeypatch.setattr(selections, "WINDOW_NUMBERS", 1)


def fit(transport: Any = Loopback, task: Any = RIDGE, **options: Any) -> cn.Run[Any]:
    return federation(transport, **options).fit(task, sampler=ALL, solver=GRAM, seed=1)


def bits(model: Any) -> bytes:
    return bytes(model.coef_.tobytes() + np.float64(model.intercept_).tobytes())


def kinds(run: cn.Run[Any]) -> list[str]:
    return [entry.kind for entry in run.ledger]


# The model


@pytest.mark.parametrize(
    ("task", "weighted", "split"),
    [
        (RIDGE, False, None),
        (cn.Regression(fit_intercept=False), True, cn.HoldOut(0.2)),
        (cn.Regression(standardize=True, l1=0.01), False, cn.SplitBy("second")),
        (cn.Regression(l2=1e-3), True, cn.SplitBy("second")),
    ],
)
def test_windows_change_nothing_of_the_model(
    monkeypatch: pytest.MonkeyPatch, task: Any, weighted: bool, split: Any
) -> None:
    ways = {"sampler": ALL, "solver": GRAM, "split": split}
    run = federation(weighted=weighted).fit(task, **ways)
    assert kinds(run).count("WindowShare") == 3 * 3
    monkeypatch.setattr(selections, "WINDOW_NUMBERS", 1 << 18)
    larger = federation(weighted=weighted).fit(task, **ways)
    assert kinds(larger).count("WindowShare") == 3
    assert bits(larger.model) == bits(run.model), "sums of whole numbers are exact, however rows are cut"
    monkeypatch.setattr(question, "AT_ONCE", N)
    whole = federation(weighted=weighted).fit(task, **ways)
    assert "WindowShare" not in kinds(whole)
    np.testing.assert_allclose(run.model.coef_, whole.model.coef_, rtol=1e-9, atol=1e-11)
    assert run.model.intercept_ == pytest.approx(whole.model.intercept_, rel=1e-9)
    assert run.diagnostics == pytest.approx(whole.diagnostics, rel=1e-9)
    if not weighted:  # weights travel once less
        assert run.ledger.units == whole.ledger.units


def test_a_table_that_stays_in_its_file_gives_the_same_bits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(large_files, "STREAMED_BYTES", 1)
    pq.write_table(pa.table({"a": X[:, 0], "b": X[:, 1]}), tmp_path / "first.parquet", row_group_size=7000)
    those = [cn.Party("first", tmp_path / "first.parquet"), *parties()[1:]]
    assert type(those[0].table) is StreamedTable
    run = cn.Federation(those).fit(RIDGE, sampler=ALL, solver=GRAM)
    assert bits(run.model) == bits(fit().model)


def test_products_are_those_of_all_rows_to_the_last_bit(monkeypatch: pytest.MonkeyPatch) -> None:
    found: list[Floats] = []
    honest = read_products

    def read(*what: Any) -> Floats:
        found.append(honest(*what))
        return found[-1]

    monkeypatch.setattr(windows_server, "read_products", read)
    fit()
    tables = [party.table for party in parties()]
    bases = [all_directions(block_basis(table), table, range(n_blocks_of(N))) for table in tables]
    limbs = to_limbs(np.hstack(bases))
    expected = from_limbs(limb_products(limbs, limbs))
    owners = np.repeat(np.arange(3), [each.shape[1] for each in bases])
    above = owners[:, None] < owners
    assert found[0][0][above].tobytes() == expected[above].tobytes()


def test_fewer_low_bits_of_more_rows_leave_the_model_nearly_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """As of 2^40 rows; here these are fewer."""
    model = fit().model
    for module in (question, messages):
        monkeypatch.setattr(module, "low_bits", lambda _: LOW_BITS - 9)
    fewer = fit().model
    np.testing.assert_allclose(fewer.coef_, model.coef_, rtol=1e-9)
    assert bits(fewer) != bits(model)


def test_dependent_and_constant_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    values = np.column_stack([X[:, :1], np.full(N, 1e6 / 3), X[:, :1] * 2, X[:, 1]])
    model = fit(values=values, task=cn.Regression()).model
    monkeypatch.setattr(question, "AT_ONCE", N)
    whole = fit(values=values, task=cn.Regression()).model
    np.testing.assert_allclose(model.coef_, whole.coef_, rtol=1e-8, atol=1e-12)
    assert model.coef_[1] == 0


def test_a_window_without_a_row_that_counts() -> None:
    marks = np.arange(N) < BLOCK_ROWS
    those = [cn.Party("a", X[:, :2], split=marks), cn.Party("b", X[:, 2:3]), cn.Party("c", X[:, 3:], label=Y)]
    run = cn.Federation(those).fit(cn.Regression(), sampler=ALL, solver=GRAM, split=cn.SplitBy("a"))
    kept, labels = (each[BLOCK_ROWS:] - each[BLOCK_ROWS:].mean(axis=0) for each in (X, Y))
    np.testing.assert_allclose(run.model.coef_, np.linalg.lstsq(kept, labels)[0], rtol=1e-8)


def test_nothing_is_held_that_grows_with_rows() -> None:
    peaks = []
    for n_rows in (1 << 16, 1 << 19, 1 << 20):
        large = computed_federation(n_rows)
        tracemalloc.start()
        run = large.fit(RIDGE, sampler=ALL, solver=cn.SecureGram(allow_two_parties=True))
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
        assert not {"rows", "weights"} & run.coreset.__dict__.keys()
    assert peaks[2] - peaks[1] < 1 << 19, "less than a byte a row"


@pytest.mark.parametrize(
    ("task", "ways"),
    [
        (cn.Regression(l2="cv"), {"sampler": ALL}),
        (RIDGE, {"sampler": cn.UniformSampling(N)}),
        (cn.Classification(l2=0.1), {"sampler": ALL}),
    ],
)
def test_what_does_not_come_in_windows_has_a_limit(monkeypatch: pytest.MonkeyPatch, task: Any, ways: Any) -> None:
    monkeypatch.setattr(question, "MAX_NUMBERS", 5 * 2 * N - 1)
    those = parties()
    if isinstance(task, cn.Classification):
        those[2] = cn.Party("third", X[:, 3:], label=(np.median(Y) < Y).astype(float))
    with pytest.raises(cn.InputError, match=rf"SecureGram takes {N - 1:,} rows at most, of 5 columns in all"):
        cn.Federation(those).fit(task, solver=GRAM, **ways)


# What the server saw


def test_nothing_of_a_row_reaches_the_server_and_nothing_of_sums_before_the_last_window() -> None:
    wire = Recording()
    fit(wire)
    replies = wire.replies()
    told = np.concatenate([numbers_in(reply) for reply in replies])
    for session in wire.sessions.values():
        table = session._data.table
        some, basis = np.arange(0, N, 997), block_basis(table)
        rows, shared = table.take(some), all_directions(basis, table, range(n_blocks_of(N)))[some]
        forms: set[bytes] = set()
        for values in (rows, rows - basis.mean, shared):
            forms |= float_forms(values)
            assert not np.isin(values[values != 0], told).any()
        limbs = to_limbs(shared)[:, 0]
        forms |= {limbs[i, j].tobytes() for i, j in np.ndindex(limbs.shape)}
        assert not [form for form in forms if any(form in data for data in wire.received)]
    last = max(place for place, reply in enumerate(replies) if isinstance(reply, WindowShare))
    assert not [reply for reply in replies[:last] if isinstance(reply, GramShares)]
    assert len([reply for reply in replies[last:] if isinstance(reply, GramShares)]) == 3


def shares_of(wire: Recording) -> list[bytes]:
    return [reply.share for reply in wire.replies() if isinstance(reply, WindowShare) and reply.share]


def test_shares_of_windows_and_of_runs_have_no_word_in_common_and_the_model_stays() -> None:
    """The same rows in every window: what is added to them is another each time."""
    values = np.tile(X[:BLOCK_ROWS], (3, 1))[:N]
    shares, models = [], []
    for seed in (1, 2):
        wire = Recording()
        parties_here = parties(values=values)
        identities = identities_here(tuple(party.name for party in parties_here), Entropy(seed))
        for party in parties_here:
            party.identity = identities[party.name]
        run = cn.Federation(parties_here, transport=wire).fit(RIDGE, sampler=ALL, solver=GRAM, seed=1)
        shares += shares_of(wire)
        models.append(bits(run.model))
    assert models[0] == models[1] == bits(fit(values=values).model)
    words = np.concatenate([np.frombuffer(share, "<u8") for share in shares])
    assert len(np.unique(words)) == len(words), "false alarms: 680,000^2 / 2 pairs of 64-bit words, 1 in 10^7"


def test_no_two_windows_have_one_transcript() -> None:
    windows = [selections.Window(first, stop, 1) for first, stop in ((0, 5), (0, 6), (5, 6), (1, 5))]
    found = {window_transcript(transcript, window) for window in windows for transcript in (b"a" * 32, b"b" * 32)}
    assert len(found) == 8


# Meddling and restarts


def meddled(kind: type[Any], change: Any, victim: str = "second") -> Any:
    def meddle(sender: str, receiver: str, data: bytes) -> bytes:
        message = codec().decode(data)
        if victim in (sender, receiver) and isinstance(message, kind):
            return codec().encode(change(message))
        return data

    return Wire(meddle)


def test_a_flipped_bit_is_an_error_and_never_another_model() -> None:
    """Two bits of every message after the hello, drawn from a fixed seed."""
    wire = Recording()
    fit(wire)
    rng = np.random.default_rng(0)
    for number in range(6, len(wire.received) + len(wire.sent)):
        for bit in rng.integers(2**23, size=2):
            with pytest.raises(cn.ColonnadeError):
                fit(Wire(flip_message(number, int(bit))))


def test_windows_that_are_swapped_on_the_way_are_found_out() -> None:
    """What a party signed is a digest of its shares in their order."""
    held: list[bytes | None] = []

    def swap(reply: WindowShare) -> WindowShare:
        held.append(reply.share)
        return WindowShare(held[0]) if len(held) == 2 else reply

    with pytest.raises(cn.ColonnadeError, match="a signature of 'second' on something else"):
        fit(meddled(WindowShare, swap))


@pytest.mark.parametrize(
    "kind", ["AskPairKey", "AskSealedSeeds", "AskGramWindows", "AskWindowShare", "AskGramBlocks", "AskPairAgreement"]
)
def test_a_party_that_restarts_inside_the_phase_changes_nothing(kind: str) -> None:
    restarting = Restarting(kind, "first", times=2)
    assert bits(fit(restarting).model) == bits(fit().model)
    assert restarting.restarts >= 1


class Later(Restarting):
    """Restarts before the second window."""

    def exchange(self, outbox: Any) -> Any:
        request = outbox.get(self._party)
        if isinstance(request, AskWindowShare) and not request.first:
            self._kind = "none"
        elif isinstance(request, AskWindowShare):
            self._kind = "AskWindowShare"
        return super().exchange(outbox)


def test_a_party_that_restarts_between_windows_changes_nothing() -> None:
    restarting = Later("AskWindowShare", "third", times=3)
    run = fit(restarting)
    assert bits(run.model) == bits(fit().model)
    assert restarting.restarts == 3
    assert kinds(run).count("WindowShare") == 3 * (2 * 3 + 3)


def test_a_party_that_restarts_for_ever_is_an_error() -> None:
    with pytest.raises(cn.RemoteProtocolError, match="'third' lost its key 5 times"):
        fit(Restarting("AskWindowShare", "third", times=99))


@pytest.mark.parametrize(
    ("kind", "changes", "message"),
    [
        (WindowShare, {"share": b""}, "'second' sent a WindowShare with a share of other than 262144 bytes"),
        (GramShares, {"share": bytes(16)}, "'second' sent a GramShares with a share or blocks of other than 0 and"),
        (GramShares, {"blocks": b""}, "'second' sent a GramShares with a share or blocks of other than 0 and 64 bytes"),
        (GramShares, {"means": sendable_floats(np.ones((2, 1)))}, "shape"),
        (GramShares, {"transcript": bytes(32)}, "a digest of another request than it was sent"),
        (
            GramShares,
            {"blocks": bytes(64)},
            "a signature of 'second' on something else",
        ),
    ],
)
def test_a_reply_that_no_honest_party_sends(kind: Any, changes: Any, message: str) -> None:
    with pytest.raises(cn.ColonnadeError, match=message):
        fit(meddled(kind, lambda reply: msgspec.structs.replace(reply, **changes)))


# A server that asks otherwise


def changed(**fields: Any) -> Any:
    return lambda request: msgspec.structs.replace(request, **fields)


def again(request: AskWindowShare) -> AskWindowShare:
    return msgspec.structs.replace(request, first=0, stop=BLOCK_ROWS)


OTHERWISE = [
    (AskWindowShare, changed(first=BLOCK_ROWS, stop=2 * BLOCK_ROWS), "rows from 16384 on, where 0 would be next"),
    (AskWindowShare, again, "rows from 0 on, where 16384 would be next"),
    (AskWindowShare, changed(first=0, stop=1), "a window of rows 0 to 1"),
    (AskWindowShare, changed(first=0, stop=N), f"a window of rows 0 to {N}"),
    (AskWindowShare, changed(n_columns=6), "rows from 0 on, where 0 would be next"),
    (AskWindowShare, lambda _: AskGramBlocks(), rf"sums of all rows, where 0 of {N:,} were shared"),
    (AskGramWindows, changed(n_columns=(2, 1)), "numbers of columns that are not the parties'"),
    (AskGramWindows, changed(n_columns=(2, 2, 2)), "numbers of columns that are not the parties'"),
    (AskGramWindows, changed(n_columns=(2, 1, -2)), "numbers of columns that are not the parties'"),
    (AskGramWindows, changed(n_columns=(2**40, 1, 2)), "columns of all parties are more than the 4,095 of which"),
    (AskGramWindows, changed(n_columns=(4095 - 2, 1, 2)), "4,096 columns of all parties are more than the 4,095"),
    (
        AskGramWindows,
        lambda r: AskWindowShare(0, BLOCK_ROWS, sum(r.n_columns)),
        "is not legal at step",
    ),
]


@pytest.mark.parametrize(("kind", "change", "message"), OTHERWISE)
@pytest.mark.parametrize("with_sheet", [True, False])
def test_windows_that_no_honest_server_asks_for(kind: Any, change: Any, message: str, with_sheet: bool) -> None:
    """A party refuses them by the job sheet; where none was opened, by what it keeps."""
    wire = meddled(kind, change)
    if with_sheet:
        with pytest.raises(cn.ColonnadeError, match="the job sheet|would be next in this job|" + message):
            fit(wire)
        return
    those = federation(wire)
    with pytest.raises(cn.ColonnadeError, match=message):
        play(those, learn(RIDGE, ALL, GRAM, None, those.roster, 1))


def test_windows_of_few_rows_or_of_drawn_ones_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """What was drawn weighs what the server says, and is few: it is asked for otherwise."""

    def open_instead(request: AskGramShares) -> AskGramWindows:
        return AskGramWindows(request.n_columns, request.keys, request.box)

    wire = meddled(AskGramShares, open_instead)
    those = federation(wire)
    with pytest.raises(cn.ColonnadeError, match="windows of all rows, where others were agreed on"):
        play(those, learn(RIDGE, cn.UniformSampling(500), GRAM, None, those.roster, 1))
    monkeypatch.setattr(question, "AT_ONCE", N)
    those = federation(wire)
    with pytest.raises(cn.ColonnadeError, match=rf"windows of {N:,} rows, which are shared at once"):
        play(those, learn(RIDGE, ALL, GRAM, None, those.roster, 1))


def test_a_party_that_says_it_has_a_million_columns_is_named_before_room_is_made_for_them() -> None:
    cards = [PartyCard(name, 5_000_000, names, None) for name, names in (("a", ("x",)), ("b", ("x",) * 1_000_000))]
    rows = CountedRows(5_000_000)
    with pytest.raises(cn.InputError, match=r"4,095 columns .* these are 1,000,001: 'b' has 1,000,000\."):
        next(windows_server.gram_in_windows(Roster(tuple(cards)), rows))


def test_another_question_in_the_same_run_is_refused() -> None:
    """A server that says that a key was lost may ask the same again, and nothing else."""
    asked: list[AskGramWindows] = []

    def meddle(_sender: str, receiver: str, data: bytes) -> bytes:
        message = codec().decode(data)
        if isinstance(message, WindowShare):
            return codec().encode(WindowShare(None))
        if isinstance(message, AskGramWindows) and receiver == "first":
            asked.append(message)
            return codec().encode(msgspec.structs.replace(message, n_columns=(2, 1, 1 + len(asked))))
        return data

    those = federation(Wire(meddle))
    with pytest.raises(cn.ColonnadeError, match="a AskGramWindows that differs from what it asked before in this run"):
        play(those, learn(RIDGE, ALL, GRAM, None, those.roster, 1))
    assert len(asked) == 2


# The route


def route(task: Any = RIDGE, *, takes_all: bool = True, party: str = "third") -> Route:
    return GRAM.route(task, Agreed(federation().roster, party, 0, None, N, N, takes_all=takes_all))


def windows() -> list[Message]:
    return [AskWindowShare(start, min(start + BLOCK_ROWS, N), 5) for start in range(0, N, BLOCK_ROWS)]


def after(left: Route | None, *requests: Message) -> Route | None:
    for request in requests:
        left = None if left is None else left.after(request)
    return left


def opening(n_columns: tuple[int, ...] = (2, 1, 2)) -> list[Message]:
    return [AskPairKey(), AskGramWindows(n_columns, CircleKeys(b"", ()), b"")]


def test_windows_come_once_in_their_order_and_begin_anew_where_a_key_is_lost() -> None:
    end, (first, second, last) = [AskGramBlocks(), AskPairAgreement(())], windows()
    done = after(route(), *opening(), first, second, last, *end)
    assert done is not None
    assert done.can_end
    for kept in ([], [first], [first, second], [first, second, last]):
        assert after(route(), *opening(), *kept, *opening(), first, second, last, *end) is not None
    for wrong in ([second], [first, first], [first, last], [first, second, last, last], [AskGramBlocks()]):
        assert after(route(), *opening(), *wrong) is None, wrong
    assert after(route(), *opening((2, 2, 2))) is None
    assert after(route(), *opening(), AskWindowShare(0, BLOCK_ROWS, 6)) is None
    left = route()
    for _ in range(5):
        found = after(left, *opening(), first)
        assert found is not None
        left = found
    assert after(left, *opening()) is None, "five times at most"


@pytest.mark.parametrize("other", [{"takes_all": False}, {"task": cn.Regression(l2="cv")}], ids=["drawn rows", "folds"])
def test_what_is_drawn_or_dealt_to_folds_has_no_windows(other: Any) -> None:
    assert after(route(), *opening()) is not None
    assert after(route(**other), *opening()) is None


def test_few_rows_have_no_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(question, "AT_ONCE", N)
    assert after(route(), *opening()) is None
    monkeypatch.setattr(question, "MAX_NUMBERS", 2 * 5 * N - 1)
    assert after(route(), *opening()) is not None


def test_the_dealer_is_asked_for_seeds_first() -> None:
    key, opened = opening()
    assert after(route(party="first"), key, opened) is None
    assert after(route(party="first"), key, AskSealedSeeds(CircleKeys(b"", ())), opened) is not None


def test_what_is_kept_is_not_shown() -> None:
    kept: list[Any] = []

    class Looking(Recording):
        def exchange(self, outbox: Any) -> Any:
            inbox = super().exchange(outbox)
            kept.extend(session.state.secret for session in self.sessions.values())
            return inbox

    fit(Looking())
    assert {repr(each.kept) for each in kept if getattr(each, "kept", None)} == {"WindowsKept(not shown)"}
