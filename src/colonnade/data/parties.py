"""Who takes part: an organisation with its columns and its policy."""

from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt

from colonnade.catalogue import check_policy
from colonnade.data.engines import Engine
from colonnade.data.keys import Duplicates
from colonnade.data.sources import has_names
from colonnade.data.streamed_tables import StreamedTable
from colonnade.data.tables import read_table
from colonnade.errors import InputError
from colonnade.ledger import SERVER
from colonnade.options import whole_number
from colonnade.preparation.rules import HowToPrepare
from colonnade.protocol.identity import Identity
from colonnade.protocol.policy import Policy


class Party:
    """An organisation and its columns.

    Parameters
    ----------
    name : str
        Unique in the federation.
    data : array_like of shape (n_rows, n_columns), table, path or Query
        Numbers without gaps; every party holds the same rows in the same order. A table is whatever gives an Arrow
        stream: pandas, polars, pyarrow, a DuckDB relation, an ADBC reader. A path is that of a Parquet, CSV (also
        gzipped) or Arrow IPC file, or of a folder of Parquet files. A `Query` reads a database. Parquet files of more
        than 256 MB (8 bytes a row and column), and a `pyarrow.dataset.Dataset` of any size, stay in their files: only
        the rows that are being worked on are in memory. So it is with other files, queries and streams of that size,
        which are put into a temporary file.
    label : str or array_like of shape (n_rows,), optional
        At the label party: the name of the label's column, or, beside a plain array, the labels.
    key : str or sequence of str, optional
        The column, or columns, that identify rows; they are no features. By them a federation aligns the rows of its
        parties; where it does not, only their digest is told, to check that all parties that name a key hold the same
        rows in the same order. Keys are trimmed, in lower case and Unicode NFC, and integers agree with their text.
    duplicates : {"error", "first", "drop"}
        Of rows that repeat a key: refuse them, keep the first, or keep none.
    weight : str or array_like of shape (n_rows,), optional
        How much each row counts, zero or more: a column, or an array beside an array. One party may hold weights;
        every job respects them, and for that all parties and the server are told them.
    split : str or array_like of shape (n_rows,), optional
        Which rows to hold out where a job asks for ``SplitBy(name)``: 1, true or "test" where one is.
    prepare : Prepare or "auto", optional
        How columns that are no numbers, or have gaps, become numbers: which columns, by which rules. "auto" chooses
        rules by the table, and prints them. What they learn from the rows stays at the party.
    engine : Engine, optional
        Who works on a table that stays in its files: threads of this process, if left out.
    policy : Policy, optional
        What this party answers, and which of its columns enter at all; anything and all if left out.
    identity : Identity, optional
        Who it is to the server and the other parties: a signing key and their pinned keys
        (`colonnade.privacy.identities.PinnedIdentity`). In one process, where no party has one, each is given one.

    Examples
    --------
    >>> import numpy as np, colonnade as cn
    >>> cn.Party("airline", np.eye(3), label=np.arange(3.0))
    Party('airline', 3 rows, 3 features, label 'airline_label')
    """

    def __init__(
        self,
        name: str,
        data: object,
        *,
        label: str | npt.ArrayLike | None = None,
        key: str | Sequence[str] | None = None,
        duplicates: Duplicates = "error",
        weight: str | npt.ArrayLike | None = None,
        split: str | npt.ArrayLike | None = None,
        prepare: HowToPrepare | None = None,
        engine: Engine | None = None,
        policy: Policy | None = None,
        identity: Identity | None = None,
    ) -> None:
        check_party_name(name)
        if policy is not None and not isinstance(policy, Policy):
            raise InputError(f"Party {name!r}: {policy!r} is not a policy. Pass for instance Policy(never=['labels']).")
        if identity is not None and identity.name != name:
            raise InputError(f"Party {name!r} was given the identity of {identity.name!r}. Give it its own.")
        if engine is not None and not callable(getattr(engine, "map", None)):
            raise InputError(
                f"Party {name!r}: {engine!r} is no engine. Pass for instance cn.DaskEngine('tls://machine:8786'), or "
                "leave out engine=: then threads of this process work."
            )
        self.name = name
        self.policy = policy or Policy(level="open")
        check_policy(self.policy)
        self.table = read_table(
            name,
            data,
            label=label,
            key=key,
            duplicates=duplicates,
            weight=weight,
            split=split,
            policy=self.policy,
            prepare=prepare,
            engine=engine,
        )
        self.identity = identity

    @property
    def notes(self) -> tuple[str, ...]:
        """What is unusual about its file, as was found out: "bank.csv: separated by semicolons, decimal comma"."""
        return self.table.notes

    def __repr__(self) -> str:
        table = self.table
        label = "" if table.label_name is None else f", label {table.label_name!r}"
        what = "features" if table.preparing is None else "columns to prepare"
        where = table.said if isinstance(table, StreamedTable) else ""
        return f"Party({self.name!r}, {table.n_rows} rows, {len(table.feature_names)} {what}{label}{where})"


def check_party_name(name: object) -> None:
    """Require a name that is not the server's."""
    if not isinstance(name, str) or not name.strip() or name == SERVER:
        raise InputError(f"A party cannot be called {name!r}. Give it a name of its own, not {SERVER!r}.")


def split_columns(
    X: npt.ArrayLike, y: npt.ArrayLike | None, widths: Iterable[int], *, weight: npt.ArrayLike | None = None
) -> list[Party]:
    """Make parties of one matrix: the first columns to the first party, and so on; y to the last, as in the paper.

    Parameters
    ----------
    X : array_like, shape (n_rows, n_features)
        All features.
    y : array_like, shape (n_rows,), or None
        Labels.
    widths : iterable of int
        How many columns each party holds; they add up to n_features.
    weight : array_like, shape (n_rows,), optional
        Row weights; they go to the last party too.

    Returns
    -------
    list of Party
        Named party1, party2, ...

    Examples
    --------
    >>> import numpy as np, colonnade as cn
    >>> [party.name for party in cn.split_columns(np.eye(6), np.ones(6), [2, 2, 2])]
    ['party1', 'party2', 'party3']
    """
    if has_names(X):
        raise InputError("split_columns takes a plain array. Make one Party of each named table, or pass X.to_numpy().")
    matrix = np.asanyarray(X)  # a masked array stays one, and is refused where it has gaps
    if not isinstance(widths, Iterable):
        raise InputError(f"widths must be a list with one number of columns a party, got {widths!r}. Pass [3, 2].")
    widths = [whole_number("a width", width, least=1, example="Pass for instance [3, 2].") for width in widths]
    if matrix.ndim != 2 or sum(widths) != matrix.shape[1] or not widths:
        raise InputError(
            f"widths {widths} must add up to the columns of X, whose shape is {matrix.shape}. Pass one width a party."
        )
    blocks = np.split(matrix, np.cumsum(widths)[:-1], axis=1)
    last = len(blocks)
    others = [Party(f"party{i}", block) for i, block in enumerate(blocks[:-1], start=1)]
    return [*others, Party(f"party{last}", blocks[-1], label=y, weight=weight)]
