"""The server's runs: how they end, what is found again after a kill or without power, and what goes."""

import errno
from functools import partial
from pathlib import Path

import pytest

from colonnade.node import runs
from colonnade.node.log import LOG, EventLog
from colonnade.node.runs import KEPT_DONE, KEPT_UNFINISHED, STATUS, RunBook, read_status
from colonnade.node.state_folder import StateFolder
from colonnade.protocol.run_purpose import RunPurpose
from network_trial import events
from power_loss import power_loss

ASKED, REPLIES = {"bank": b"request"}, {"bank": b"reply"}


def purpose(number: int = 0, verb: str = "fit") -> RunPurpose:
    return RunPurpose(verb, "regression", "importance", "saga", f"{number:064d}")


class Server:
    """A book that can be opened again on the same folder."""

    def __init__(self, folder: Path) -> None:
        self.state = StateFolder(folder)
        self.book = RunBook(self.state, EventLog(None))

    def start_again(self) -> None:
        self.state.release()  # the operating system does that when a process dies
        self.state = StateFolder(self.state.path)
        self.book = RunBook(self.state, EventLog(None))

    def play(self, what: RunPurpose, end: str = "done") -> tuple[str, bool]:
        """Play a run of one round; give its name, and whether a party was asked."""
        run = self.book.open(what)
        is_asked = run.recorded(ASKED) is None
        if is_asked:
            run.record(ASKED, REPLIES)
        if end == "done":
            self.book.end(run, "done", "")
        elif end:
            self.book.end(run, "failed", end)
        if end:
            self.book.tidy(run)
        run.close()
        return run.status.run, is_asked

    @property
    def journals(self) -> list[str]:
        return [path.stem for path in self.state.journals()]


@pytest.fixture
def server(tmp_path: Path) -> Server:
    return Server(tmp_path / "state")


def test_a_run_that_is_done_asks_nobody_again_until_its_result_is_kept(server: Server) -> None:
    name, _ = server.play(purpose())
    for _ in range(2):  # killed, and killed once more
        server.start_again()
        assert server.play(purpose()) == (name, False)
        assert server.book.outcome(name) == ("done", "")
    server.book.forget_done()
    assert server.journals == []
    server.start_again()
    assert server.play(purpose())[1], "the same asked for later is another run"


def test_the_same_asked_for_twice_in_one_process_is_two_runs(server: Server) -> None:
    names = [server.play(purpose())[0] for _ in range(2)]
    server.start_again()
    assert [server.play(purpose()) for _ in range(2)] == [(name, False) for name in names], "in their order"
    assert server.play(purpose())[1]


def test_a_run_that_is_done_is_not_asked_for_more(server: Server) -> None:
    server.play(purpose())
    server.start_again()
    run = server.book.open(purpose())
    assert run.recorded(ASKED) == REPLIES
    with pytest.raises(Exception, match="differs from the journal's"):
        run.recorded(ASKED)


@pytest.mark.parametrize(("verb", "end"), [("fit", "'shop' refuses"), ("hello", "done")])
def test_of_a_failed_run_and_a_hello_nothing_stays(server: Server, verb: str, end: str) -> None:
    name, _ = server.play(purpose(verb=verb), end)
    assert server.journals == []
    server.start_again()
    assert server.book.outcome(name) == (("done", "") if end == "done" else ("failed", end))


def test_killed_right_after_a_failed_end_parties_hear_its_reason(server: Server) -> None:
    run = server.book.open(purpose())
    run.end("failed", "'shop' refuses")
    server.start_again()
    assert server.journals == []
    assert not server.book.knows(run.status.run)
    assert server.book.outcome(run.status.run) == ("failed", "'shop' refuses")


def test_no_more_than_a_few_journals_stay(server: Server) -> None:
    names = [server.play(purpose(number))[0] for number in range(KEPT_DONE + 5)]
    assert server.journals == names[5:]
    for number in range(KEPT_UNFINISHED + 3):
        run = server.book.open(purpose(number + 100))
        gone = server.book.abandon(run)
        assert all(server.book.outcome(name)[0] == "failed" for name in gone)
        assert run.status.run not in gone
        run.close()
    assert len(server.journals) == KEPT_DONE + KEPT_UNFINISHED


def test_without_power_at_any_step_a_run_that_has_ended_asks_nobody_again(tmp_path: Path) -> None:
    """Once its end is told, that is: before, what was not forced to the disk is asked for again."""
    step, finished = 0, False
    while not finished:
        home = tmp_path / f"{step}"
        home.mkdir()
        with power_loss(home) as power:
            server = Server(home / "state")
            finished = power.cut_after(step, partial(server.play, purpose()))
            server.state.release()
        server = Server(home / "state")
        _, is_asked = server.play(purpose())
        assert not (finished and is_asked)
        assert len(server.journals) == 1
        server.book.forget_done()
        assert server.journals == []
        server.state.release()
        step += 1
    assert step > 10


def test_what_is_forgotten_does_not_come_back_without_power(tmp_path: Path) -> None:
    with power_loss(tmp_path):
        server = Server(tmp_path / "state")
        server.play(purpose())
        server.book.forget_done()
        server.state.release()
    assert Server(tmp_path / "state").journals == []


def test_a_journal_of_a_done_run_that_is_torn_or_flipped_gives_the_same_or_is_lost(tmp_path: Path) -> None:
    server = Server(tmp_path / "state")
    name, _ = server.play(purpose())
    path = server.state.journal(name)
    whole = path.read_bytes()
    found = set()
    for position in range(len(whole)):
        for content in (
            whole[:position],
            whole[:position] + bytes([whole[position] ^ 8]) + whole[position + 1 :],
        ):
            path.write_bytes(content)
            server.start_again()
            run = server.book.open(purpose())
            replies = run.recorded(ASKED)
            assert replies in (None, REPLIES)
            found.add(replies is None)
            run.remove()
            for journal in server.state.journals():
                journal.unlink()
    assert found == {True, False}
    server.state.release()


def no_files(*_: object, **__: object) -> None:
    raise OSError(errno.EMFILE, "Too many open files")


def test_a_server_that_has_closed_writes_no_status(server: Server) -> None:
    server.book.close()
    file = server.state.path / STATUS
    file.unlink()
    server.book.write_status(now=True)
    assert not file.exists(), "the folder may be another server's by now"


def test_a_status_that_cannot_be_written_is_said_once_and_ends_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = StateFolder(tmp_path)
    book = RunBook(folder, EventLog(tmp_path / LOG))
    with monkeypatch.context() as broken:
        broken.setattr(runs, "write_private", no_files)
        run = book.open(RunPurpose("fit", None, None, None, "print"))
        for _ in range(3):
            book.write_status(now=True)
        assert book.lost_writes == 3
    book.end(run, "done", "")
    assert book.lost_writes == 0
    assert [each.status for each in read_status(tmp_path).runs] == ["done"]
    said = [line for line in events(tmp_path / LOG) if "written" in line["event"]]
    assert [(line["event"], line.get("reason"), line.get("lost")) for line in said] == [
        ("status not written", "Too many open files", None),
        ("status written again", None, 3),
    ]
    folder.release()
