"""A server that went away is started again and asks for the same: the run goes on."""

import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import colonnade as cn
from colonnade.node.certificates import new_certificates
from colonnade.node.journal import Journal
from colonnade.transports.envelopes import Ask
from network_trial import PartyThread, events, free_port, write_federation_file

TASK, SAMPLER = cn.Regression(l2=0.1), cn.ImportanceSampling(size=30, scores="plain")


class PowerCut(BaseException):
    """No error of ours: the process might as well have died."""


def make_parties() -> list[cn.Party]:
    rng = np.random.default_rng(0)
    return [
        cn.Party("bank", rng.normal(size=(60, 2)), label=rng.normal(size=60)),
        cn.Party("shop", rng.normal(size=(60, 2))),
    ]


def fit(federation: cn.Federation, seed: int = 4) -> cn.Run[cn.LinearModel]:
    return federation.fit(TASK, sampler=SAMPLER, solver=cn.Saga(batch=2, tolerance=1e-3), seed=seed)


class Town:
    """Two parties, and a server that may be started many times."""

    def __init__(self, folder: Path) -> None:
        new_certificates(folder / "certs", ["bank", "shop"])
        self.folder, self.port = folder, free_port()
        self.path = write_federation_file(folder, ["bank", "shop"], self.port)

    def play(self, job: Any, cut_at: tuple[str, int] | str | None = None) -> Any:
        def on_round(phase: str, number: int) -> None:
            if cut_at in (phase, (phase, number)):
                raise PowerCut

        parties = [PartyThread(self.folder, party, self.port) for party in make_parties()]
        try:
            with cn.Federation.connect(self.path, on_round=on_round) as federation:
                return job(federation)
        finally:
            for party in parties:
                party.join()

    def journals(self, name: str) -> list[str]:
        return sorted(path.name for path in (self.folder / f"{name}-state").glob("*.journal"))

    def logged(self, name: str, event: str) -> list[dict[str, Any]]:
        return [line for line in events(self.folder / f"{name}-state" / "log.jsonl") if line["event"] == event]


@pytest.fixture
def town(tmp_path: Path) -> Town:
    return Town(tmp_path)


def planned(federation: cn.Federation) -> cn.Run[cn.LinearModel]:
    return federation.fit(TASK, plan=federation.plan(TASK, budget_bytes=9_000, seed=1), seed=4)


@pytest.mark.parametrize("cut_at", [("summing", 4), ("solving", 3)], ids=["in the pilot", "in the run"])
def test_a_plan_and_its_run_go_on(town: Town, cut_at: tuple[str, int]) -> None:
    """The same plan is made of the replayed pilot, or of another one for the same seed, and carried out to the end."""
    with pytest.raises(PowerCut):
        town.play(planned, cut_at)
    run, here = town.play(planned), planned(cn.Federation(make_parties()))
    assert run.model.coef_.tobytes() == here.model.coef_.tobytes()
    assert (run.ledger, run.facts) == (here.ledger, here.facts)
    assert town.logged("server", "run resumed")


@pytest.mark.parametrize(
    "cut_at", [("sampling", 2), ("sampling", 3), ("summing", 4), ("solving", 5), ("solving", 41), "telling"]
)
def test_what_was_asked_is_not_asked_again(town: Town, cut_at: tuple[str, int] | str) -> None:
    with pytest.raises(PowerCut):
        town.play(fit, cut_at)
    assert len(town.journals("server")) == 1
    assert town.journals("bank") == town.journals("shop") == town.journals("server")
    run = town.play(fit)
    here = fit(cn.Federation(make_parties()))
    assert run.model.coef_.tobytes() == here.model.coef_.tobytes()
    assert run.ledger == here.ledger, "the replayed rounds are on the ledger too"
    assert town.logged("server", "run resumed")
    numbers = [line["number"] for line in town.logged("shop", "answered") if line["run"].startswith("fit")]
    assert numbers == sorted(set(numbers)), "no request was answered anew"
    assert not list(town.folder.rglob("*.journal"))


def forget_the_last(path: Path, n_records: int) -> None:
    """Cut a journal short, as a machine does that loses its power, with room in the file that was never written to."""
    journal = Journal(path)
    kept = [(bytes(first), bytes(rest)) for first, rest in journal.records()][:-n_records]
    journal.remove()
    journal = Journal(path)
    for record in kept:
        journal.append(*record)
    journal.close()
    with path.open("ab") as file:
        file.write(bytes(5000))


def test_a_server_that_lost_the_end_of_its_journal_is_told_again(town: Town) -> None:
    with pytest.raises(PowerCut):
        town.play(fit, ("solving", 41))
    forget_the_last(town.folder / "server-state" / town.journals("server")[0], 36)
    run, here = town.play(fit), fit(cn.Federation(make_parties()))
    assert run.model.coef_.tobytes() == here.model.coef_.tobytes()
    assert run.ledger == here.ledger
    numbers = [line["number"] for line in town.logged("shop", "answered") if line["run"].startswith("fit")]
    assert numbers == sorted(set(numbers)), "no request was answered anew"
    assert len(town.logged("shop", "repeated")) == 36


def test_a_party_that_lost_the_end_of_its_journal_ends_the_run_with_one_clear_error(town: Town) -> None:
    with pytest.raises(PowerCut):
        town.play(fit, ("solving", 40))
    forget_the_last(town.folder / "shop-state" / town.journals("shop")[0], 10)
    with pytest.raises(cn.LocalProtocolError, match=r"'shop' did not answer .*: request 40 does not follow request 2"):
        town.play(fit)
    assert town.play(fit).model.coef_.tobytes() == fit(cn.Federation(make_parties())).model.coef_.tobytes()


def test_another_job_is_another_run_and_the_first_waits(town: Town) -> None:
    with pytest.raises(PowerCut):
        town.play(fit, ("solving", 20))
    first = town.journals("server")
    other = town.play(lambda federation: fit(federation, seed=5))
    assert other.model.coef_.tobytes() == fit(cn.Federation(make_parties()), seed=5).model.coef_.tobytes()
    assert town.journals("server") == town.journals("shop") == first
    assert town.play(fit).model.coef_.tobytes() == fit(cn.Federation(make_parties())).model.coef_.tobytes()
    assert not town.journals("server")


def test_a_server_that_lost_its_folder_lets_the_parties_forget(town: Town) -> None:
    with pytest.raises(PowerCut):
        town.play(fit, ("solving", 20))
    for file in (town.folder / "server-state").iterdir():
        file.unlink()
    assert town.play(fit).model.coef_.tobytes() == fit(cn.Federation(make_parties())).model.coef_.tobytes()
    ended = [line for line in town.logged("shop", "run ended") if line["status"] == "failed"]
    assert ended[0]["reason"] == "the server does not know this run"
    assert not town.journals("shop")


def test_a_party_that_lost_its_folder_ends_the_run_with_one_clear_error(town: Town) -> None:
    with pytest.raises(PowerCut):
        town.play(fit, ("solving", 20))
    for file in (town.folder / "shop-state").iterdir():
        file.unlink()
    with pytest.raises(cn.LocalProtocolError, match=r"'shop' did not answer .*: it does not know this run"):
        town.play(fit)
    assert town.play(fit).model.coef_.tobytes() == fit(cn.Federation(make_parties())).model.coef_.tobytes()


def test_a_damaged_journal_is_not_resumed(town: Town) -> None:
    with pytest.raises(PowerCut):
        town.play(fit, ("solving", 20))
    path = town.folder / "server-state" / town.journals("server")[0]
    broken = bytearray(path.read_bytes())
    broken[100] ^= 1
    path.write_bytes(broken)
    assert town.play(fit).model.coef_.tobytes() == fit(cn.Federation(make_parties())).model.coef_.tobytes()
    assert "is damaged" in town.logged("server", "run lost")[0]["reason"]


def test_one_state_folder_for_one_process(town: Town) -> None:
    def connect_again(_: cn.Federation) -> None:
        with pytest.raises(cn.InputError, match="is in use by another process"):
            cn.Federation.connect(town.path)

    town.play(connect_again)


def test_a_port_in_use_is_told(town: Town) -> None:
    def connect_again(_: cn.Federation) -> None:
        path = write_federation_file(town.folder, ["bank", "shop"], town.port, state="other-state")
        with pytest.raises(cn.TransportError, match="cannot listen at"):
            cn.Federation.connect(path)

    town.play(connect_again)


def test_the_server_that_a_party_runs_is_named_in_the_disclosures(town: Town) -> None:
    town.path = write_federation_file(town.folder, ["bank", "shop"], town.port, run_by="bank")
    run = town.play(lambda federation: federation.fit(TASK, sampler=SAMPLER))
    assert run.ledger.disclosures()["shop", "server (bank)"] == ("schema", "totals", "row ids", "scores", "features")
    again = cn.Run.load(run.save(town.folder / "run"))
    assert again.ledger.disclosures() == run.ledger.disclosures()


def test_large_messages_survive_a_restart_of_the_party(town: Town) -> None:
    """A reply of more than a megabyte is not journaled: it is made again, and checked."""
    rng = np.random.default_rng(1)
    wide = [cn.Party("bank", rng.normal(size=(40_000, 5))), cn.Party("shop", rng.normal(size=(40_000, 3)))]
    parties = [PartyThread(town.folder, party, town.port) for party in wide]
    answer = parties[0].desk.answer
    broken: list[int] = []

    def answer_and_break(ask: Ask) -> Any:
        found = answer(ask)
        if found is not None and len(found.payload) > 1 << 20 and not broken:
            broken.append(ask.number)
            parties[0].line.stop()
        return found

    parties[0].desk.answer = answer_and_break  # type: ignore[method-assign]
    with cn.Federation.connect(town.path, on_round=lambda _phase, _number: None) as federation:

        def come_back() -> None:
            parties[0].join()
            parties[0] = PartyThread(town.folder, wide[0], town.port)

        helper = threading.Thread(target=come_back)
        helper.start()
        run = federation.fit(cn.KMeans(n_clusters=2, n_starts=1), sampler=cn.AllRows())
        helper.join()
    for party in parties:
        party.join()
    here = cn.Federation(wide).fit(cn.KMeans(n_clusters=2, n_starts=1), sampler=cn.AllRows())
    assert broken
    assert run.model.cluster_centers_.tobytes() == here.model.cluster_centers_.tobytes()
