"""The page on scale shows what the benchmark stored, a bar that is missed is named so, and the store goes on."""

import json
import runpy
from pathlib import Path
from typing import Any

import pytest

import colonnade as cn

PROJECT = Path(__file__).parents[2]
SCRIPT = runpy.run_path(str(PROJECT / "scripts" / "scale_page.py"))
LINES = SCRIPT["read"](PROJECT / "benchmarks" / "scale.jsonl")
SIDE_BY_SIDE = runpy.run_path(str(PROJECT / "benchmarks" / "side_by_side.py"))
CASE = {"bench": "verbs", "work": "regression scores", "rows": 100_000, "columns": 10}


def test_the_tables_are_those_of_the_stored_lines() -> None:
    text = (PROJECT / "docs" / "explanation" / "scale.md").read_text()
    assert SCRIPT["page"](text, LINES) == text, "run scripts/scale_page.py, and read the page again"


def test_the_figure_can_be_drawn_from_them(tmp_path: Path) -> None:
    SCRIPT["draw"](LINES, tmp_path / "scale.svg")
    assert "peak of memory" in (tmp_path / "scale.svg").read_text()
    assert "extrapolated" in (tmp_path / "scale.svg").read_text()


def growth_line(n_rows: int) -> dict[str, Any]:
    """Take a second for a million rows; what is held of small tables is more than a line through others would say."""
    return {
        "case": {"bench": "growth", "task": "regression", "rows": n_rows, "columns": 10},
        "seconds": {"fit": n_rows / 1e6 if n_rows >= 20_000_000 else 99.0},
        "clock": {"fit": n_rows / 2e6},
        "peak MB": 300 if n_rows >= 20_000_000 else 800,
    }


@pytest.mark.parametrize(
    ("seconds", "verdict"), [({"ours": 1.2, "bare": 1.0}, "met"), ({"ours": 1.4, "bare": 1.0}, "**missed**")]
)
def test_a_bar_is_judged_by_the_worst(seconds: dict[str, float], verdict: str) -> None:
    good = {"case": {**CASE, "rows": 1_000_000}, "seconds": {"ours": 1.0, "bare": 1.0}}
    row = _row([good, {"case": CASE, "seconds": seconds}])
    assert row.endswith(f"| regression scores, 1e5 rows, 10 columns | {verdict} |")


def test_what_was_refused_or_not_measured_meets_no_bar() -> None:
    refused = {"case": CASE, "seconds": {"bare": 1.0}, "refused": {"ours": "too many rows"}}
    assert _row([refused]).endswith("| not measured |")
    assert _row([refused], "of these benchmarks, refused").endswith("| **missed** |")
    assert "too many rows" in SCRIPT["refused"]([refused])


def test_a_billion_rows_lie_on_the_line_through_the_largest_two_that_keep_nothing() -> None:
    lines = [growth_line(n_rows) for n_rows in (100_000, 1_000_000, 10_000_000, 20_000_000, 100_000_000)]
    seconds, clock, peak = SCRIPT["billion"](lines, "regression")
    assert seconds == {"fit": pytest.approx(1000.0)}
    assert clock == {"fit": pytest.approx(500.0)}
    assert peak == 300
    assert SCRIPT["billion"](lines[:4], "regression") is None, "small tables say nothing of it"


def test_lines_say_which_code_took_them_and_a_star_what_ran_once() -> None:
    by = {"commit": "abc", "kernels": "Haswell", "date": "2026-01-02"}
    once = {"case": {**CASE, "work": "regression fit"}, "by": by, "seconds": {"ours": 1.0, "LinearRegression": 2.0}}
    once["repeats"] = {"ours": 9, "LinearRegression": 1}
    lines = [{"machine": {"processor": "p", "cores": 2, "memory GB": 1, "system": "s"}}, once, {"case": CASE}]
    assert "Lines: 1 of commit abc, OpenBLAS kernels for Haswell, 2026-01-02; 1 older." in SCRIPT["machine"](lines)
    assert "| 1 s | LinearRegression 2 s* |" in SCRIPT["fits"](lines)


def start_line(start: int, *costs: float) -> dict[str, Any]:
    case = {"bench": "clusters", "work": "a start", "table": "Covertype", "rows": 100, "k": 200, "start": start}
    return {"case": case, "seconds": {"KMeans, 1 start": 2.0 + start}, "costs": list(costs)}


def test_ten_starts_that_were_timed_one_by_one_are_added_up(tmp_path: Path) -> None:
    case = {"bench": "clusters", "work": "scores", "table": "Covertype", "rows": 100, "k": 200}
    scores = {"case": case, "seconds": {"ours": 1.0}, "cost": {"ours": 1.0}}
    other = {**scores, "case": {**case, "k": 15}}
    starts = [start_line(0, 8.0, 2.0), start_line(1, 4.0, 3.0), *(start_line(each, 9.0, 9.0) for each in range(2, 10))]
    path = tmp_path / "scale.jsonl"
    path.write_text("\n".join(map(json.dumps, [scores, other, *starts])))
    found = SCRIPT["read"](path)
    assert found[0]["seconds"] == {"ours": 1.0, "KMeans, 10 starts": 65.0}
    assert found[0]["cost"] == {"ours": 1.0, "KMeans, 10 starts": 0.6}
    assert found[1:] == [other], "they are of another number of centres"
    assert "| 65 x |" in _row(found, "ten starts of")
    path.write_text("\n".join(map(json.dumps, [scores, *starts[:9]])))
    assert SCRIPT["read"](path) == [scores], "nine are not ten"


def test_a_contender_that_only_one_of_two_runs_has_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "scale.jsonl"
    known = {**SIDE_BY_SIDE["machine"](), "a contender": "1.0"}
    path.write_text(json.dumps({"machine": known}) + "\n" + json.dumps({"case": CASE}) + "\n")
    store = SIDE_BY_SIDE["Store"](path)
    assert not store.lacks(CASE)
    store.fill({**CASE, "rows": 7}, lambda: {"seconds": {"ours": 1.0}})
    assert SCRIPT["read"](path)[0] == {"machine": known}


def test_memory_that_is_touched_before_is_not_counted() -> None:
    SIDE_BY_SIDE["touch_memory"](400_000_000)
    assert SIDE_BY_SIDE["peak_mb"]() < held_mb() + 200


def held_mb() -> float:
    """Tell what this process holds now."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096 / 1e6


def test_what_is_stored_is_not_measured_again_unless_told(tmp_path: Path) -> None:
    path = tmp_path / "new" / "scale.jsonl"
    store = SIDE_BY_SIDE["Store"](path)
    assert store.lacks(CASE)
    store.fill(CASE, lambda: {"seconds": {"ours": 1.0}})
    assert not store.lacks(CASE)
    assert not SIDE_BY_SIDE["Store"](path).lacks(CASE)
    again = SIDE_BY_SIDE["Store"](path, again=True)
    assert again.lacks(CASE)
    again.fill(CASE, lambda: {"seconds": {"ours": 2.0}})
    again.fill(CASE, lambda: {"seconds": {"ours": 3.0}})
    assert not again.lacks(CASE)
    lines = SCRIPT["read"](path)
    assert [line.get("seconds") for line in lines] == [None, {"ours": 2.0}]
    assert lines[0]["machine"]["cores"] >= 1


def test_a_case_that_is_refused_is_stored_as_such(tmp_path: Path) -> None:
    def refuse() -> dict[str, Any]:
        raise cn.UnsupportedError("There are too many rows. Take fewer.")

    SIDE_BY_SIDE["Store"](tmp_path / "scale.jsonl").fill(CASE, refuse)
    line = SCRIPT["read"](tmp_path / "scale.jsonl")[1]
    assert line.pop("by").keys() == {"commit", "kernels", "date"}
    assert line == {"case": CASE, "seconds": {}, "refused": {"ours": "There are too many rows. Take fewer."}}


def test_measurements_of_another_machine_are_not_mixed_in(tmp_path: Path) -> None:
    path = tmp_path / "scale.jsonl"
    path.write_text(json.dumps({"machine": {"processor": "abacus"}}) + "\n" + json.dumps({"case": CASE}) + "\n")
    with pytest.raises(SystemExit, match=r"of another machine .* {'processor': 'abacus'}.* Pass --again"):
        SIDE_BY_SIDE["Store"](path)
    assert SIDE_BY_SIDE["Store"](path, again=True).lacks(CASE)


def test_who_refuses_is_named_and_the_others_are_timed() -> None:
    calls: list[str] = []

    def refuse() -> None:
        calls.append("ours")
        raise cn.UnsupportedError("There are too many rows. Take fewer.")

    found = SIDE_BY_SIDE["time_in_turns"]({"ours": refuse, "bare": lambda: calls.append("bare")})
    assert (calls.count("ours"), calls.count("bare")) == (1, 100)
    assert list(found["seconds"]) == ["bare"]
    assert found["repeats"] == {"bare": 99}, "what takes no time is repeated often"
    assert found["refused"] == {"ours": "There are too many rows. Take fewer."}


def test_a_child_tells_what_it_did_and_held_or_why_it_did_not(tmp_path: Path) -> None:
    script = tmp_path / "work.py"
    script.write_text(
        f"import sys; sys.path.insert(0, {str(PROJECT / 'benchmarks')!r})\n"
        "from side_by_side import as_child\n"
        "def does(size): return {'size': len(bytes(size))}\n"
        "as_child(does)\n"
    )
    told: dict[str, Any] = SIDE_BY_SIDE["in_child"](str(script), {"size": 50_000_000, "cores": 1})
    assert told["size"] == 50_000_000
    assert told["peak MB"] > 48
    assert "MemoryError" in SIDE_BY_SIDE["in_child"](str(script), {"size": 1 << 60})["refused"]


def _row(lines: list[dict[str, Any]], of: str = "regression scores over their") -> str:
    return next(str(row) for row in SCRIPT["bars"](lines).splitlines() if row.startswith(f"| {of}"))
