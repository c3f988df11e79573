"""federation.toml and party.toml: where to meet, who may come, with which certificates, within which limits."""

from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

import msgspec

from colonnade.catalogue import check_policy
from colonnade.data.dask_engine import DaskEngine
from colonnade.data.databases import PLACES, Query
from colonnade.data.keys import Duplicates
from colonnade.data.parties import Party
from colonnade.errors import InputError
from colonnade.node.allowance import DayLimits
from colonnade.options import learn_types
from colonnade.preparation.rules import HowToPrepare
from colonnade.protocol.identity import Identity
from colonnade.protocol.policy import Level, Policy
from colonnade.toml_files import read_toml
from colonnade.transports.endpoints import Name, PartyEndpoint, Seconds, ServerEndpoint, Tls

D = TypeVar("D", bound="DataFile")
# What to do where a table of a file is left out.
MISSING = {
    "policy": "no party starts without a policy: what its owner answers. Write [policy] with a level, strict, usual or "
    "open; `colonnade policy new` writes one with comments.",
    "identity": "it has no [identity], and parties and server could not tell each other from impostors. Write "
    "[identity] with key and pins; `colonnade certs new` makes all for a trial, `colonnade certs identity` one.",
}
TLS_FILES = ("authority", "certificate", "key", "passphrase_file")
DATA_FILES = ("file", "database", "database_file")
IDENTITY_FILES = ("key", "pins", "passphrase_file")
# In place of an address: NVIDIA FLARE carries, and proves who is who.
FLARE = "flare"
Count = Annotated[int, msgspec.Meta(ge=1)]
Amount = Annotated[int, msgspec.Meta(ge=0)]
# What a policy has besides amounts.
RULES = (
    "never",
    "phases",
    "solvers",
    "tasks",
    "rows_a_request",
    "least_rows",
    "least_parties",
    "parameters_a_row",
    "known_only",
    "accepted",
    "models_in_all",
    "sums_in_all",
    "align",
    "columns",
    "never_columns",
)
# What a party sends a server in one day, by level. A row counts each time it is told: a fit on 2,000 rows takes 4,000
# by Central, 32,000 by Saga.
ORDINARY_DAY = {
    "rows": 100_000,
    "row_ids": 100_000,
    "keys": 10_000_000,
    "numbers": 1_000_000,
    "moments": 10_000_000,
    "models": 100_000,
}
DAY_LIMITS: dict[str, dict[str, int]] = {"strict": ORDINARY_DAY, "usual": ORDINARY_DAY, "open": {}}


class IdentityFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """[identity]: the secret of the party, or of the server, and the pins of all parties and of the server."""

    key: str
    pins: str
    passphrase_env: str | None = None
    passphrase_file: str | None = None


class AlignFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """[align]: how the parties' records are matched."""

    mode: str = "exact"  # whatever it is: why plain hashes are none is said where modes are checked


class FederationFile(ServerEndpoint, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a server reads."""

    state: str
    identity: IdentityFile
    insecure_plaintext_on_loopback: bool = False
    run_by: Name | None = None
    align: AlignFile = AlignFile()
    job: list[dict[str, Any]] = msgspec.field(default_factory=list)


class DataFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """[data]: the party's table, in a file, a folder, or a database."""

    file: str | None = None
    label: str | None = None
    key: str | list[str] | None = None
    duplicates: Duplicates = "error"
    weight: str | None = None
    split: str | None = None
    query: str | None = None
    database: str | None = None
    database_env: str | None = None
    database_file: str | None = None
    engine: Literal["local", "dask"] = "local"
    scheduler: str | None = None

    def __post_init__(self) -> None:
        if (self.file is None) == (self.query is None):
            raise ValueError("a table is read from a file or by a query: give one of `file` and `query`")
        self.source()
        self.own_engine()

    def source(self) -> str | Query:
        """Give where the table is: a path, or a query."""
        if self.query is not None:
            return Query(self.query, self.database, self.database_env, self.database_file)
        if named := [name for name in PLACES if getattr(self, name) is not None]:
            raise ValueError(f"`{named[0]}` belongs to a query, and this table is in a file: leave out one of the two")
        return self.file or ""

    def own_engine(self) -> DaskEngine | None:
        """Give the cluster that works on the table; None where this process does."""
        if (self.engine == "dask") != (self.scheduler is not None):
            raise ValueError(
                '`engine = "dask"` and `scheduler = "tls://machine:8786"`, the address of your own Dask cluster, '
                "belong together: give both, or leave out both"
            )
        return None if self.scheduler is None else DaskEngine(self.scheduler)

    def no_features(self) -> list[str]:
        """List the columns that are its label, key, weight or split."""
        keys = [self.key] if isinstance(self.key, str) else self.key or []
        return [name for name in (self.label, *keys, self.weight, self.split) if name is not None]

    def party(
        self,
        name: str,
        policy: Policy | None = None,
        identity: Identity | None = None,
        prepare: HowToPrepare | None = None,
    ) -> Party:
        """Read the table, and make a party of it."""
        return Party(
            name,
            self.source(),
            label=self.label,
            key=self.key,
            duplicates=self.duplicates,
            weight=self.weight,
            split=self.split,
            prepare=prepare,
            engine=self.own_engine(),
            policy=policy,
            identity=identity,
        )


class PolicyFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """[policy]: what the owner answers. What is left out is as the level has it."""

    level: Level = "usual"
    never: list[str] | None = None
    phases: list[str] | None = None
    solvers: list[str] | None = None
    tasks: list[str] | None = None
    rows_a_request: Count | None = None
    least_rows: Count | None = None
    least_parties: Count | None = None
    parameters_a_row: float | None = None
    known_only: bool | None = None
    accepted: list[str] | None = None
    models_in_all: float | None = None
    sums_in_all: float | None = None
    align: list[str] | None = None
    columns: list[str] | None = None
    never_columns: list[str] | None = None
    rows_a_day: Amount | None = None
    row_ids_a_day: Amount | None = None
    keys_a_day: Amount | None = None
    numbers_a_day: Amount | None = None
    moments_a_day: Amount | None = None
    models_a_day: Amount | None = None
    requests_a_minute: Count | None = None
    open_runs: Count = 4

    def policy(self) -> Policy:
        """Put it together: the level's rules, and what the owner wrote in their place."""
        written = {name: value for name in RULES if (value := getattr(self, name)) is not None}
        return Policy(level=self.level, **written)

    def column_rules(self) -> dict[str, list[str]]:
        """Give what it says of columns."""
        rules = {"columns": self.columns, "never_columns": self.never_columns}
        return {name: columns for name, columns in rules.items() if columns is not None}

    def a_day(self, n_rows: int) -> DayLimits:
        """Give the amounts a day, for a table of so many rows."""
        names, ordinary = DayLimits.__struct_fields__, DAY_LIMITS[self.level]
        written = {name: value for name in names if (value := getattr(self, f"{name}_a_day")) is not None}
        # How often each row is drawn tells its score: once a row and day tells little.
        few = {"row_ids": min(ordinary["row_ids"], n_rows)} if ordinary else {}
        return DayLimits(**{**ordinary, **few, **written})


class PartyTable(msgspec.Struct, frozen=True):
    """What a party.toml says of the party's table, whatever else it says or does not say yet."""

    name: str
    data: DataFile
    prepare: HowToPrepare | None = None
    policy: PolicyFile = PolicyFile()


class PartyFile(PartyEndpoint, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a party reads."""

    state: str
    data: DataFile
    identity: IdentityFile
    policy: PolicyFile
    prepare: HowToPrepare | None = None
    insecure_plaintext_on_loopback: bool = False
    predictions: str | None = None
    # Whether the owner is asked for each job. The server waits for a day: who did not decide before has said no.
    approve: Literal["always", "ask"] = "always"
    approve_within: Seconds = 23 * 3600.0
    approve_hook: tuple[str, ...] = ()


learn_types(FederationFile, PartyFile)


def read_federation_file(path: Path) -> FederationFile:
    """Read federation.toml; every path in it becomes absolute, starting at its folder."""
    file = read_toml(path, FederationFile, _missing)
    if len(set(file.parties)) != len(file.parties):
        raise InputError(f"{path}: a party is named twice. Give each its own name.")
    if file.run_by is not None and file.run_by not in file.parties:
        raise InputError(
            f"{path}: run_by names {file.run_by!r}, which is not a party. Name the party that runs the server."
        )
    _check_security(path, file.tls, file.insecure_plaintext_on_loopback, file.listen)
    folder = path.resolve().parent
    return msgspec.structs.replace(
        file,
        state=str(folder / file.state),
        revoked=None if file.revoked is None else str(folder / file.revoked),
        tls=_absolute(file.tls, folder),
        identity=_beside(file.identity, folder),
    )


def read_party_file(path: Path) -> PartyFile:
    """Read party.toml; every path in it becomes absolute, starting at its folder."""
    file = read_toml(path, PartyFile, _missing)
    _check_policy(path, file.policy)
    if file.approve_hook and file.approve != "ask":
        raise InputError(
            f'{path}: approve_hook decides where the owner is asked. Add approve = "ask", or leave it out.'
        )
    _check_security(path, file.tls, file.insecure_plaintext_on_loopback, file.server)
    folder = path.resolve().parent
    return msgspec.structs.replace(
        file,
        state=str(folder / file.state),
        revoked=None if file.revoked is None else str(folder / file.revoked),
        tls=_absolute(file.tls, folder),
        identity=_beside(file.identity, folder),
        data=data_beside(file.data, folder),
        predictions=None if file.predictions is None else str(folder / file.predictions),
        approve_hook=_command_beside(file.approve_hook, folder),
    )


def read_party_table(path: Path) -> PartyTable:
    """Read of party.toml only what its table is: it may have no policy yet."""
    file = read_toml(path, PartyTable, _missing)
    return msgspec.structs.replace(file, data=data_beside(file.data, path.resolve().parent))


def is_loopback(address: str) -> bool:
    """Tell whether an address stays on this machine; names are not looked up."""
    name = address.rpartition(":")[0].strip("[]")
    return name in ("localhost", "::1") or name.startswith("127.")


def _missing(problem: str) -> str | None:
    return next((hint for field, hint in MISSING.items() if f"missing required field `{field}`" in problem), None)


def _check_policy(path: Path, rules: PolicyFile) -> None:
    try:
        check_policy(rules.policy())
    except InputError as error:
        raise InputError(f"{path}, [policy]: {error}") from error


def _check_security(path: Path, tls: Tls | None, plaintext: bool, address: str) -> None:
    if address == FLARE and (tls is not None or plaintext):
        raise InputError(f"{path}: FLARE has certificates of its own. Leave out [tls], or name an address and a port.")
    if address == FLARE:
        return
    if ":" not in address:
        raise InputError(f"{path}: the address {address!r} has no port. Write for instance 'localhost:7143'.")
    if (tls is None) != plaintext:
        raise InputError(
            f"{path}: give [tls] with authority, certificate and key; or, for a trial on one machine only, "
            "insecure_plaintext_on_loopback = true without [tls]. `colonnade certs new` makes certificates."
        )
    if plaintext and not is_loopback(address):
        raise InputError(
            f"{path}: plaintext is refused at {address}, which is not loopback: anyone on the way could read and "
            "change everything. Use [tls], or 127.0.0.1."
        )


def _beside(identity: IdentityFile, folder: Path) -> IdentityFile:
    files = {name: str(folder / path) for name in IDENTITY_FILES if (path := getattr(identity, name)) is not None}
    return msgspec.structs.replace(identity, **files)


def _command_beside(command: tuple[str, ...], folder: Path) -> tuple[str, ...]:
    """Let a command that is a path start at the file's folder; a name without a slash is looked for in PATH."""
    return (str(folder / command[0]), *command[1:]) if command and "/" in command[0] else command


def data_beside(data: D, folder: Path) -> D:
    """Let paths of a table start at the folder of the file that names them."""
    named = {name: str(folder / path) for name in DATA_FILES if (path := getattr(data, name)) is not None}
    return msgspec.structs.replace(data, **named)


def _absolute(tls: Tls | None, folder: Path) -> Tls | None:
    if tls is None:
        return None
    named = {name: str(folder / path) for name in TLS_FILES if (path := getattr(tls, name)) is not None}
    return msgspec.structs.replace(tls, **named)
