"""What a server stands: a hundred parties, five hundred runs in a row, two thousand strangers at its port.

The server is this process; all parties are threads of another one, on loopback with mutual TLS. Beside the seconds of a
run are those of processor time, in which a busy machine hardly shows: of the server, and of one party, which is what a
run between machines waits for.

    python benchmarks/many_parties.py [--parties 10 50 100] [--runs 500] [--strangers 2000] [--page PAGE.md]
"""

import argparse
import gc
import json
import resource
import socket
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median

import numpy as np
from pages import Row, show, table

import colonnade as cn
from colonnade.node.certificates import new_certificates

N_ROWS, FILES, TOGETHER = 500, 1024, 25
TASK = cn.Regression(l2=0.1)
PLAIN, SECURE = (cn.ImportanceSampling(size=200, scores=scores) for scores in ("plain", "secure"))
JOBS: dict[str, Callable[[cn.Federation, int], object]] = {
    "coreset": lambda federation, seed: federation.coreset(TASK, PLAIN, seed=seed),
    "fit": lambda federation, seed: federation.fit(TASK, sampler=PLAIN, solver=cn.Central(), seed=seed),
    "secure coreset": lambda federation, seed: federation.coreset(TASK, SECURE, seed=seed),
}
DIAL = """
import resource, socket, sys, time
resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
lines = [socket.create_connection(("127.0.0.1", int(sys.argv[1])), timeout=10) for _ in range(int(sys.argv[2]))]
print(len(lines), flush=True)
time.sleep(60)
"""


def write_files(folder: Path, names: list[str], n_rows: int = N_ROWS) -> Path:
    """Write what a federation of these parties needs; the last one holds the label."""
    new_certificates(folder / "certs", names)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{probe.getsockname()[1]}"
    rng = np.random.default_rng(0)
    for name in names:
        label = name == names[-1]
        header = "a,b,y" if label else "a,b"
        np.savetxt(
            folder / f"{name}.csv", rng.normal(size=(n_rows, 2 + label)), "%.6f", ",", header=header, comments=""
        )
        data = f'data = {{ file = "{name}.csv"{", label = " + chr(34) + "y" + chr(34) if label else ""} }}\n'
        (folder / f"{name}.toml").write_text(
            f'name = "{name}"\nserver = "{address}"\nstate = "{name}-state"\nwait_seconds = 60\n{data}'
            f'policy = {{ level = "open" }}\n{_certificates(name)}'
        )
    path = folder / "federation.toml"
    path.write_text(
        f'parties = {json.dumps(names)}\nlisten = "{address}"\nstate = "server-state"\nwait_seconds = 60\n'
        f"{_certificates('server')}"
    )
    return path


def _certificates(name: str) -> str:
    return (
        f'tls = {{ authority = "certs/ca.pem", certificate = "certs/{name}.pem", key = "certs/{name}.key" }}\n'
        f'identity = {{ key = "certs/{name}.identity", pins = "certs/pins.toml" }}\n'
    )


def be_parties(files: list[Path]) -> None:
    """Be the parties of these files, until the server closes."""
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
    options = {"once": True, "say": lambda _: None}
    threads = [threading.Thread(target=cn.serve_party, args=(path,), kwargs=options) for path in files]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


@contextmanager
def federation(
    n_parties: int, *, n_rows: int = N_ROWS, one_apart: bool = False
) -> Iterator[tuple[cn.Federation, Path, list[int]]]:
    """Connect so many parties; give where their files are, and their processes: one, or the first party's and others.

    There are so many to one of these: threads of a process wait for each other, the longer the more of them there are.
    """
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        path = write_files(folder, names := [f"p{number:03}" for number in range(n_parties)], n_rows)
        others = [names[start : start + TOGETHER] for start in range(1, n_parties, TOGETHER)]
        groups = [names[:1], *others] if one_apart else [names]
        files = [[str(folder / f"{each}.toml") for each in group] for group in groups]
        command = [sys.executable, str(Path(__file__).resolve()), "--as-parties"]
        processes = [subprocess.Popen([*command, *group]) for group in files]  # noqa: S603  # ourselves
        try:
            with cn.Federation.connect(path) as connected:
                yield connected, folder, [process.pid for process in processes]
            for process in processes:
                process.wait(60)
        finally:
            for process in processes:
                process.kill()
                process.wait()


def processor_seconds(process: int) -> float:
    """Tell what a process has used."""
    user, system = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[11:13]
    return (int(user) + int(system)) / 100


def held(process: int | str = "self") -> Row:
    """Tell what a process holds."""
    gc.collect()
    status = Path(f"/proc/{process}/status").read_text()
    return {
        "MB": round(int(status.split("VmRSS:")[1].split()[0]) / 1024, 1),
        "files": len(list(Path(f"/proc/{process}/fd").iterdir())),
        "threads": int(status.split("Threads:")[1].split()[0]),
    }


def time_parties(n_parties: int, repeats: int) -> list[Row]:
    """Time each job, medians."""
    rows: list[Row] = []
    with federation(n_parties) as (connected, _, [parties]):
        for job, play in JOBS.items():
            play(connected, 0)
            walls, servers, before = [], [], processor_seconds(parties)
            for seed in range(1, repeats + 1):
                wall, server = time.perf_counter(), time.process_time()
                play(connected, seed)
                walls.append(time.perf_counter() - wall)
                servers.append(time.process_time() - server)
            a_party = (processor_seconds(parties) - before) / repeats / n_parties
            row = {"job": job, "parties": n_parties, "seconds": median(walls), "server": median(servers)}
            rows.append({**row, "a party": a_party})
            print(json.dumps(rows[-1]), file=sys.stderr)
    return rows


def many_runs(n_runs: int) -> list[Row]:
    """Play run after run, and tell what both processes hold before, halfway and after."""
    rows: list[Row] = []
    with federation(3) as (connected, folder, [parties]):
        for done in range(n_runs + 1):
            JOBS["fit"](connected, done % 5)
            if done in (20, n_runs // 2, n_runs):
                time.sleep(1)
                state = [path for path in folder.glob("*-state/*") if path.name != "log.jsonl"]
                logs = sum(path.stat().st_size for path in folder.glob("*-state/log.jsonl"))
                kept = {
                    "state files": len(state),
                    "state kB": round(sum(path.stat().st_size for path in state) / 1e3, 1),
                }
                both = {"server": held(), "parties": held(parties)}
                rows.append({"runs": done, **both, **kept, "log kB a run": round(logs / 1e3 / (done + 1), 2)})
                print(json.dumps(rows[-1]), file=sys.stderr)
    return rows


def many_strangers(count: int) -> Row:
    """Let strangers dial in under a limit of files, and run on."""
    with federation(3) as (connected, folder, _):
        wanted = connected.coreset(TASK, PLAIN, seed=1).coreset
        port = (folder / "federation.toml").read_text().partition("127.0.0.1:")[2].partition('"')[0]
        resource.setrlimit(resource.RLIMIT_NOFILE, (FILES, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
        before = held()
        command = [sys.executable, "-c", DIAL, port, str(count)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as dialling:  # noqa: S603  # ourselves
            came = int(dialling.stdout.readline()) if dialling.stdout else 0
            found = connected.coreset(TASK, PLAIN, seed=1).coreset
            during = held()
            dialling.kill()
        same = found.rows.tobytes() == wanted.rows.tobytes() and found.weights.tobytes() == wanted.weights.tobytes()
    return {"strangers": came, "limit of files": FILES, "before": before, "during": during, "same result": same}


def main() -> None:
    """Measure, and print it or put it into a page, between its marks."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--as-parties", type=Path, nargs="+")
    parser.add_argument("--parties", type=int, nargs="+", default=[10, 50, 100])
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--runs", type=int, default=500)
    parser.add_argument("--strangers", type=int, default=2000)
    parser.add_argument("--page", type=Path)
    options = parser.parse_args()
    warnings.simplefilter("ignore", cn.DisclosureWarning)
    if options.as_parties:
        be_parties(options.as_parties)
        return
    timed = [row for n_parties in options.parties for row in time_parties(n_parties, options.repeats)]
    measured = {
        "parties": table(sorted(timed, key=lambda row: str(row["job"]))),
        "runs": table(many_runs(options.runs)),
        "strangers": table([many_strangers(options.strangers)]),
    }
    show(measured, options.page)


if __name__ == "__main__":
    main()
