"""What aligning costs: a party's own work against the bare library calls on the same keys, the server's apart, memory.

The bare calls are those that nothing can do without: for `aided` one keyed BLAKE2b a key; for `curve` one hash to the
group and as many multiplications a key as there are parties, on the same number of cores. A party's time is that of
all its answers, from the first to the last, with reading requests and writing replies. All keys are common, which is
the most work. Bare calls and alignments take turns; ratios are medians over turns. Seconds are those of processor time,
in which a busy machine hardly shows.

    python benchmarks/alignment.py [--aided 1000000] [--curve 20000] [--repeats 5] [--page PAGE.md]
"""

import argparse
import hashlib
import json
import os
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import median
from typing import ClassVar

import pyarrow as pa
from pages import Row, show, table
from rbcl import (
    crypto_core_ristretto255_from_hash,
    crypto_core_ristretto255_scalar_random,
    crypto_scalarmult_ristretto255,
)

import colonnade as cn
from colonnade.catalogue import codec
from colonnade.contracts import Inbox, Outbox
from colonnade.protocol.session import PartySession

N_PARTIES = 3
CODEC = codec()


class Timed:
    """Hands each request to a party as bytes, and adds up what its answer takes, by kind of request."""

    spent: ClassVar[dict[str, float]] = defaultdict(float)  # processor seconds of one party

    def __init__(self, sessions: Mapping[str, PartySession]) -> None:
        self._sessions = sessions

    def exchange(self, outbox: Outbox) -> Inbox:
        """Ask the parties one after another."""
        return {party: CODEC.decode(self._answered(party, CODEC.encode(each))) for party, each in outbox.items()}

    def _answered(self, party: str, request: bytes) -> bytes:
        begun = time.process_time()
        message = CODEC.decode(request)
        reply = CODEC.encode(self._sessions[party].answer(message))
        self.spent[message.kind] += (time.process_time() - begun) / N_PARTIES
        return reply


def keys_of(n_keys: int) -> list[bytes]:
    """Make keys such as a bank has."""
    return [f"customer-{number:09}".encode() for number in range(n_keys)]


def parties_of(n_keys: int) -> list[cn.Party]:
    """Make parties with the same keys, each in an order of its own."""
    whole = pa.table({"key": [key.decode() for key in keys_of(n_keys)], "a": [number / 97 for number in range(n_keys)]})
    turned = [pa.concat_tables([whole[turn:], whole[:turn]]) for turn in range(N_PARTIES)]
    return [cn.Party(f"p{number}", each, key="key") for number, each in enumerate(turned)]


def bare_hashes(keys: list[bytes]) -> None:
    """Hash each key under a secret."""
    secret = os.urandom(32)
    for key in keys:
        hashlib.blake2b(key, key=secret, digest_size=16).digest()


def bare_points(keys: list[bytes], threads: int) -> None:
    """Hash each key to the group, and multiply so often as there are parties."""
    scalar = crypto_core_ristretto255_scalar_random()

    def work(batch: list[bytes]) -> None:
        for key in batch:
            point = crypto_core_ristretto255_from_hash(hashlib.blake2b(key, digest_size=64).digest())
            for _ in range(N_PARTIES):
                point = crypto_scalarmult_ristretto255(scalar, point)

    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(work, [keys[start : start + 1024] for start in range(0, len(keys), 1024)]))


def timed(call: Callable[[], object]) -> float:
    """Give the processor seconds of a call."""
    begun = time.process_time()
    call()
    return time.process_time() - begun


def measure(mode: str, n_keys: int, repeats: int) -> tuple[Row, list[Row]]:
    """Let bare calls and alignments take turns; give a line of the whole, and one a kind of request."""
    keys, parties, cores = keys_of(n_keys), parties_of(n_keys), os.cpu_count() or 1
    bare_calls = (lambda: bare_hashes(keys)) if mode == "aided" else (lambda: bare_points(keys, cores))
    bare, party, server, kinds = [], [], [], defaultdict(list)
    for _ in range(repeats):
        bare.append(timed(bare_calls))
        Timed.spent.clear()
        whole = timed(lambda: cn.Federation(parties, align=mode, transport=Timed))  # type: ignore[arg-type]
        party.append(sum(Timed.spent.values()))
        server.append(whole - N_PARTIES * party[-1])
        for kind, seconds in Timed.spent.items():
            kinds[kind].append(seconds)
    row = {
        "mode": mode,
        "keys a party": f"{n_keys:,}",
        "a party, s": median(party),
        "bare calls, s": median(bare),
        "of the bare speed": f"{median(b / p for b, p in zip(bare, party, strict=True)):.0%}",
        "keys a second and core": f"{n_keys / median(party):,.0f}",
        "the server, s": median(server),
    }
    print(json.dumps(row), file=sys.stderr)
    found = {kind: median(seconds) for kind, seconds in kinds.items()}
    rows = [{"mode": mode, "answer to": f"`{kind}`", "s": each} for kind, each in found.items() if each > 0.001]
    return row, rows


def be_measured(mode: str, n_keys: int) -> None:
    """Align once, and tell by how much the most memory that was held grew."""
    cn.Federation(parties_of(100), align=mode)  # type: ignore[arg-type]  # loads what it needs
    parties = parties_of(n_keys)
    Path("/proc/self/clear_refs").write_text("5")  # forget the peak so far
    before = held("VmRSS")
    cn.Federation(parties, align=mode)  # type: ignore[arg-type]
    print(held("VmHWM") - before)


def held(what: str) -> int:
    """Tell how many bytes this process holds, or held at its peak."""
    return 1024 * int(Path("/proc/self/status").read_text().split(f"{what}:")[1].split()[0])


def memory(mode: str, n_keys: int) -> Row:
    """Measure memory in a process of its own."""
    command = [sys.executable, __file__, "--be-measured", mode, str(n_keys)]
    grown = int(subprocess.run(command, check=True, capture_output=True, text=True).stdout)  # noqa: S603  # ourselves
    row = {"mode": mode, "keys a party": f"{n_keys:,}", "MB": grown / 1e6, "bytes a key": grown / n_keys / N_PARTIES}
    print(json.dumps(row), file=sys.stderr)
    return row


def main() -> None:
    """Measure, and print it or put it into a page, between its marks."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--be-measured", nargs=2)
    parser.add_argument("--aided", type=int, default=1_000_000)
    parser.add_argument("--curve", type=int, default=20_000)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--page", type=Path)
    options = parser.parse_args()
    if options.be_measured:
        be_measured(options.be_measured[0], int(options.be_measured[1]))
        return
    sizes = {"aided": options.aided, "curve": options.curve}
    found = [measure(mode, n_keys, options.repeats) for mode, n_keys in sizes.items()]
    measured = {
        "speed": table([row for row, _ in found]),
        "answers": table([row for _, rows in found for row in rows]),
        "memory": table([memory(mode, n // part) for mode, n in sizes.items() for part in (4, 2, 1)]),
    }
    show(measured, options.page)


if __name__ == "__main__":
    main()
