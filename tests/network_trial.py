"""Federations over real gRPC streams with mutual TLS on loopback: parties in threads, or processes of the command."""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any, Self

import msgspec
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

import colonnade as cn
from colonnade.catalogue import codec, party_session
from colonnade.node.allowance import Allowance
from colonnade.node.certificates import new_certificates
from colonnade.node.desk import PartyDesk
from colonnade.node.files import DataFile, IdentityFile, PartyFile, PolicyFile
from colonnade.node.identity_files import read_identity
from colonnade.node.log import EventLog
from colonnade.node.memory_file import MEMORY, KeptInFile
from colonnade.node.state_folder import StateFolder
from colonnade.protocol.identity import Identity
from colonnade.protocol.sheet import still_signed
from colonnade.transports.endpoints import Tls
from colonnade.transports.grpc.party import GrpcParty
from colonnade.transports.revoked import Revoked

BANK = Path(__file__).parents[1] / "examples" / "bank"
COMMAND = [sys.executable, "-c", "from colonnade.cli.main import main; main()"]


BANK_FIT: dict[str, object] = {
    "do": "fit",
    "task": {"kind": "regression", "l2": 0.1},
    "sampler": {"kind": "importance", "size": 150},
    "seed": 6,
    "out": "fitted",
}


def bank_fit(solver: Any = None) -> cn.Run[Any]:
    """Do that in one process; between machines scores are summed in secret."""
    parties = [
        cn.Party("bank", BANK / "bank.csv", label="card_spending", key="customer"),
        cn.Party("telephone", BANK / "telephone.csv", key="customer"),
        cn.Party("shop", BANK / "shop.csv", key="customer"),
    ]
    sampler = cn.ImportanceSampling(size=150, scores="secure")
    return cn.Federation(parties).fit(cn.Regression(l2=0.1), sampler=sampler, solver=solver or cn.Central(), seed=6)


def until(condition: Callable[[], object], seconds: float = 90.0) -> None:
    """Wait for what another process does."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "waited too long"
        time.sleep(0.02)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def tls(folder: Path, name: str) -> Tls:
    return Tls(str(folder / "certs/ca.pem"), str(folder / f"certs/{name}.pem"), str(folder / f"certs/{name}.key"))


def identity_file(folder: Path, name: str) -> IdentityFile:
    return IdentityFile(str(folder / f"certs/{name}.identity"), str(folder / "certs/pins.toml"))


def sign(
    folder: Path,
    name: str,
    common_name: str,
    others: Sequence[x509.GeneralName],
    begins: timedelta = timedelta(minutes=-5),
    ends: timedelta = timedelta(days=90),
) -> Tls:
    """Have the authority of a folder sign anything, and put it in the place of a member's certificate and key."""
    authority = x509.load_pem_x509_certificate((folder / "certs/ca.pem").read_bytes())
    signer: Any = serialization.load_pem_private_key((folder / "certs/ca.key").read_bytes(), None)
    key, now = ec.generate_private_key(ec.SECP256R1()), datetime.now(UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)]))
        .issuer_name(authority.subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now + begins)
        .not_valid_after(now + ends)
        .add_extension(x509.SubjectAlternativeName(others), critical=False)
        .sign(signer, hashes.SHA256())
    )
    plain = serialization.NoEncryption()
    found = tls(folder, name)
    Path(found.certificate).write_bytes(made.public_bytes(serialization.Encoding.PEM))
    Path(found.key).write_bytes(key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, plain))
    Path(found.key).chmod(0o600)
    return found


def write_federation_file(folder: Path, names: Sequence[str], port: int, **changes: object) -> Path:
    """Write federation.toml; what is in `changes` takes the place of the rest, or is left out where it is None."""
    content = {
        "parties": list(names),
        "listen": f"127.0.0.1:{port}",
        "state": "server-state",
        "wait_seconds": 20.0,
        "keepalive_seconds": 2.0,
        "tls": msgspec.to_builtins(tls(folder, "server")),
        "identity": {"key": "certs/server.identity", "pins": "certs/pins.toml"},
        **changes,
    }
    path = folder / "federation.toml"
    path.write_bytes(_toml(content))
    return path


def write_party_file(folder: Path, name: str, port: int, **changes: object) -> Path:
    """Write party.toml for a party of the bank example."""
    content = {
        "name": name,
        "server": f"127.0.0.1:{port}",
        "state": f"{name}-state",
        "predictions": f"{name}-predictions.csv",
        "wait_seconds": 20.0,
        "keepalive_seconds": 2.0,
        "data": {"file": f"{name}.csv", "key": "customer"} | ({"label": "card_spending"} if name == "bank" else {}),
        "tls": msgspec.to_builtins(tls(folder, name)),
        "identity": {"key": f"certs/{name}.identity", "pins": "certs/pins.toml"},
        "policy": {"level": "open"},
        **changes,
    }
    path = folder / f"{name}.toml"
    path.write_bytes(_toml(content))
    return path


def _toml(content: dict[str, object]) -> bytes:
    """Write TOML by hand: values that are tables come last, and JSON's strings, numbers and lists are TOML's."""

    def inline(value: object) -> str:
        if isinstance(value, dict):
            return "{ " + ", ".join(f"{key} = {inline(item)}" for key, item in value.items()) + " }"
        if isinstance(value, list):
            return "[" + ", ".join(map(inline, value)) + "]"
        return json.dumps(value)

    return "".join(f"{key} = {inline(value)}\n" for key, value in content.items() if value is not None).encode()


class PartyThread:
    """A party of this process that dials over the network."""

    def __init__(
        self, folder: Path, party: cn.Party, port: int, *, identity: Identity | None = None, **changes: Any
    ) -> None:
        options = {"wait_seconds": 20.0, "keepalive_seconds": 2.0, "tls": tls(folder, party.name), **changes}
        named = identity_file(folder, party.name)
        options = {"identity": named, "policy": PolicyFile("open"), **options}
        state = str(folder / f"{party.name}-state")
        self.file = PartyFile(party.name, f"127.0.0.1:{port}", state=state, data=DataFile("unused"), **options)
        self.said: list[str] = []
        self.outcome: object = None
        self.folder = StateFolder(Path(state))
        self.log_path = self.folder.path / "log.jsonl"
        log = EventLog(self.log_path)
        rules, spent = self.file.policy, self.folder.path / "spent.json"
        self._memory = KeptInFile(self.folder.path / MEMORY)
        revoked = Revoked(self.file.revoked, self.said.append)
        identity = identity or read_identity(party.name, named, revoked, self.said.append)
        self.desk = PartyDesk(
            party_session(party.table, party.policy, identity, self._memory),
            codec(self.file.max_message_bytes),
            allowance=Allowance(spent, self.file.server_name, rules.a_day(party.table.n_rows), rules.requests_a_minute),
            folder=self.folder,
            log=log,
            max_runs=rules.open_runs,
            is_signed=partial(still_signed, identity),
            show=self.said.append,
        )
        self.line = GrpcParty(self.file, self.desk, log.write, self.said.append, revoked)
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        try:
            self.outcome = self.line.serve(once=True)
        except cn.ColonnadeError as error:
            self.outcome = error

    def join(self) -> object:
        self._thread.join(30)
        assert not self._thread.is_alive(), "the party hangs"
        self.desk.close()
        self._memory.close()
        self.folder.release()
        return self.outcome

    def stop(self) -> None:
        self.line.stop()
        self.join()


@contextmanager
def federation_in_threads(
    folder: Path, parties: Sequence[cn.Party], *, party_changes: dict[str, Any] | None = None, **changes: Any
) -> Iterator[cn.Federation]:
    """Connect parties that run in threads of this process."""
    names = [party.name for party in parties]
    if not (folder / "certs").exists():
        new_certificates(folder / "certs", names)
    port = free_port()
    path = write_federation_file(folder, names, port, **changes)
    with ExitStack() as stack:
        for party in parties:
            stack.callback(PartyThread(folder, party, port, identity=party.identity, **party_changes or {}).stop)
        with cn.Federation.connect(path) as federation:
            yield federation


def events(path: Path) -> list[dict[str, Any]]:
    """Read a log that may be written to meanwhile: whole lines only."""
    return [json.loads(line) for line in path.read_text().rpartition("\n")[0].splitlines()]


class Trial:
    """The bank example as real processes: a server and three parties, with mutual TLS."""

    names = ("bank", "telephone", "shop")

    def __init__(self, folder: Path, jobs: list[dict[str, object]], **changes: object) -> None:
        self.folder = folder
        for file in BANK.glob("*.csv"):
            shutil.copy(file, folder)
        if not (folder / "certs").exists():
            new_certificates(folder / "certs", self.names)
        self.port = free_port()
        self.federation_file = write_federation_file(folder, self.names, self.port, **{"job": jobs, **changes})
        self.party_files = {name: write_party_file(folder, name, self.port) for name in self.names}
        self._processes: list[subprocess.Popen[str]] = []

    def start(self, *arguments: str, command: Sequence[str] = COMMAND) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [*command, *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            cwd=self.folder,
            env={**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"},
        )
        self._processes.append(process)
        return process

    def start_server(self) -> subprocess.Popen[str]:
        return self.start("server", str(self.federation_file))

    def start_party(self, name: str, *options: str) -> subprocess.Popen[str]:
        return self.start("party", str(self.party_files[name]), *(options or ("--once",)))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for process in self._processes:
            if process.poll() is None:
                process.send_signal(signal.SIGKILL)
            process.wait()
            if process.stdout is not None:
                process.stdout.close()
