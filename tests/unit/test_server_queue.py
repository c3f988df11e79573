"""The queue of a server: what is read, in which order, and what is refused."""

import stat
from pathlib import Path

import pytest

from colonnade.errors import InputError
from colonnade.server_queue import KEPT_FINISHED, MAX_WAITING, Queue, queued_job

FIT: dict[str, object] = {
    "do": "fit",
    "task": {"kind": "regression", "l2": 0.1},
    "sampler": {"kind": "importance", "size": 100},
    "out": "run",
}


def test_jobs_are_done_in_the_order_they_were_put_there(tmp_path: Path) -> None:
    queue = Queue(tmp_path)
    names = [queue.add(FIT | {"seed": number}) for number in range(12)]
    assert [job.name for job in queue.waiting()] == names
    assert [job.job["seed"] for job in queue.waiting()] == list(range(12))
    for path in (tmp_path / "queue").glob("*.json"):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE((tmp_path / "queue").stat().st_mode) == 0o700


def test_what_is_noted_as_done_is_not_waiting_whatever_a_kill_left(tmp_path: Path) -> None:
    queue = Queue(tmp_path)
    name = queue.add(FIT)
    (job,) = queue.waiting()
    queue.begin(job)
    content = (tmp_path / "queue" / f"{name}.json").read_bytes()
    assert queue.end(job, result={"rows": 3}).status == "done"
    (tmp_path / "queue" / f"{name}.json").write_bytes(content)  # as if it was killed before this was removed
    assert queue.waiting() == []
    assert [(each.status, each.result) for each in queue.finished()] == [("done", {"rows": 3})]


def test_files_of_other_names_are_none_of_ours_and_unreadable_ones_are_refused(tmp_path: Path) -> None:
    queue = Queue(tmp_path)
    name = queue.add(FIT)
    folder = tmp_path / "queue"
    for other in ("x.json", "..json", f"{name}.json.fresh", f"{'9' * 20}-xyzxyzxy.json"):
        (folder / other).write_text("{}")
    (folder / f"{name}.json").write_text("{" * 100)
    (job,) = queue.waiting()
    assert (job.name, job.job) == (name, {})
    with pytest.raises(InputError):
        queued_job(job.job, tmp_path / "federation.toml")
    large = folder / f"{'8' * 20}-{'a' * 8}.json"
    large.write_text(" " * 100_000)
    assert [job.job for job in queue.waiting()] == [{}, {}]


def test_a_finished_job_that_is_too_deep_to_read_hides_no_other(tmp_path: Path) -> None:
    queue = Queue(tmp_path)
    queue.add(FIT)
    queue.end(queue.waiting()[0])
    deep = '{"result": {"x": ' + "[" * 20_000 + "]" * 20_000 + "}}"
    (tmp_path / "queue" / "finished" / f"{'9' * 20}-{'a' * 8}.json").write_text(deep)
    assert [each.status for each in queue.finished()] == ["done"]


def test_a_name_in_the_file_is_not_believed(tmp_path: Path) -> None:
    queue = Queue(tmp_path)
    name = queue.add(FIT)
    path = tmp_path / "queue" / f"{name}.json"
    path.write_bytes(path.read_bytes().replace(name.encode(), b"../../elsewhere"))
    assert [job.name for job in queue.waiting()] == [name]


def test_a_queue_is_bounded(tmp_path: Path) -> None:
    queue = Queue(tmp_path)
    for _ in range(MAX_WAITING):
        queue.add(FIT)
    with pytest.raises(InputError, match="wait already"):
        queue.add(FIT)
    for job in queue.waiting():
        queue.end(job, error="no")
    queue.add(FIT)
    (job,) = queue.waiting()
    queue.end(job, error="no")
    assert len(list((tmp_path / "queue" / "finished").iterdir())) == KEPT_FINISHED
    with pytest.raises(InputError, match="bytes"):
        queue.add(FIT | {"rows": [0] * 100_000})


def test_only_what_is_not_begun_is_taken_off(tmp_path: Path) -> None:
    queue = Queue(tmp_path)
    first, second = queue.add(FIT), queue.add(FIT)
    queue.begin(queue.waiting()[0])
    queue.remove(second)
    for name in (first, second, "../lock", ""):
        with pytest.raises(InputError, match="No job"):
            queue.remove(name)
    assert [job.name for job in queue.waiting()] == [first]


@pytest.mark.parametrize("plan", ["../plan.json", "sub/plan.json", "/etc/plan.json", "link.json", "..", ""])
def test_a_plan_lies_beside_the_file(tmp_path: Path, plan: str) -> None:
    (tmp_path / "link.json").symlink_to(tmp_path / "elsewhere.json")
    table = {"do": "fit", "task": {"kind": "regression"}, "out": "run", "plan": plan}
    with pytest.raises(InputError):
        queued_job(table, tmp_path / "federation.toml")


@pytest.mark.parametrize("change", [{"do": "remove"}, {"unknown": 1}, {"task": {"kind": "x"}}, {"sampler": None}])
def test_a_job_is_checked_as_a_job_table_is(tmp_path: Path, change: dict[str, object]) -> None:
    with pytest.raises(InputError):
        queued_job(FIT | change, tmp_path / "federation.toml")
