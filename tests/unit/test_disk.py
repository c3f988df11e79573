"""Files are written in steps that tests can follow."""

import stat
from pathlib import Path

import pytest

from colonnade import disk, failpoints


@pytest.fixture
def reached(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    points: list[str] = []
    monkeypatch.setattr(failpoints, "_listeners", [lambda point, _about: points.append(point)])
    return points


def around(*steps: str) -> list[str]:
    return [f"{when} {step}" for step in steps for when in ("before", "after")]


@pytest.mark.parametrize("durable", [True, False])
def test_a_file_is_written_by_steps_and_for_its_owner(tmp_path: Path, reached: list[str], durable: bool) -> None:
    disk.write_file(tmp_path / "a", b"content", durable=durable)
    assert (tmp_path / "a").read_bytes() == b"content"
    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == 0o600
    assert reached == around("write", "sync") if durable else around("write")


def test_names_change_by_steps(tmp_path: Path, reached: list[str]) -> None:
    (tmp_path / "a").touch()
    disk.rename(tmp_path / "a", tmp_path / "b")
    (tmp_path / "c").touch()
    disk.replace(tmp_path / "b", tmp_path / "c")
    disk.sync_folder(tmp_path)
    disk.link(tmp_path / "c", tmp_path / "d")
    for name in "cdc":
        disk.remove(tmp_path / name)
    assert list(tmp_path.iterdir()) == []
    assert reached == around("rename", "rename", "sync", "link", "remove", "remove", "remove")
