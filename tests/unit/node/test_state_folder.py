"""Who holds a state folder: one process at a time, and to look disturbs nobody."""

import threading
from pathlib import Path

import pytest

from colonnade.errors import InputError
from colonnade.node.state_folder import StateFolder, is_held


def test_to_look_changes_nothing(tmp_path: Path) -> None:
    assert not is_held(tmp_path / "state")
    assert not (tmp_path / "state").exists()
    (tmp_path / ".half.fresh").write_text("somebody writes this now")
    StateFolder(tmp_path / "other").release()
    assert not is_held(tmp_path)
    assert (tmp_path / ".half.fresh").exists()


def test_it_is_held_by_one_at_a_time(tmp_path: Path) -> None:
    held = StateFolder(tmp_path)
    assert is_held(tmp_path)
    with pytest.raises(InputError, match="in use by another process"):
        StateFolder(tmp_path)
    held.release()
    assert not is_held(tmp_path)


def test_who_looks_all_the_time_keeps_nobody_out(tmp_path: Path) -> None:
    StateFolder(tmp_path).release()
    stop = threading.Event()

    def look() -> None:
        while not stop.is_set():
            is_held(tmp_path)
            stop.wait(0.001)

    looking = [threading.Thread(target=look) for _ in range(2)]
    for thread in looking:
        thread.start()
    try:
        for _ in range(300):
            StateFolder(tmp_path).release()
    finally:
        stop.set()
        for thread in looking:
            thread.join()
