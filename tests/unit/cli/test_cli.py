"""The command as a user runs it: real processes, real files, real exit codes."""

import json
import re
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

import colonnade as cn
from colonnade.cli.main import COMMANDS, GROUPS
from command import run, run_afresh, run_on_terminal

PROJECT = Path(__file__).parents[3]
EXAMPLE = PROJECT / "examples" / "bank"


@pytest.fixture
def job(tmp_path: Path) -> Callable[..., str]:
    """Copy the example and change its job file."""
    shutil.copytree(EXAMPLE, tmp_path / "bank")

    def change(old: str = "", new: str = "") -> str:
        path = tmp_path / "bank" / "job.toml"
        text = path.read_text()
        assert old in text
        path.write_text(text.replace(old, new, 1) if old else text)
        return str(path)

    return change


def test_fit_prints_model_and_ledger_and_saves(job: Callable[..., str], tmp_path: Path) -> None:
    done = run_afresh("fit", job(), "--out", str(tmp_path / "run"))
    assert done.returncode == 0
    assert "roaming_minutes" in done.stdout
    assert "2,806 units" in done.stdout
    assert "features, labels" in done.stdout
    assert "Saved to" in done.stderr
    assert isinstance(cn.Run.load(tmp_path / "run").model, cn.LinearModel)


def test_fit_json_is_one_object_on_stdout(job: Callable[..., str]) -> None:
    found = json.loads(run("fit", job(), "--json", "--seed", "5").stdout)
    assert found["seed"] == 5
    assert found["units"] == 200 + 2 * 200 * 3 + 2 * 3 + 200 * 7
    assert found["model"]["feature_names_in_"][0] == "income"
    assert found["by_phase"]["sampling"]["units"] == 206
    again = json.loads(run("fit", job(), "--json", "--seed", "5").stdout)
    assert again["model"] == found["model"]


def test_a_chosen_penalty_is_printed_with_its_path(job: Callable[..., str]) -> None:
    file = job("l2 = 0.0 ", 'l1 = "cv" ')
    done = run("fit", file)
    assert done.returncode == 0, done.stderr
    assert "Chosen by cross-validation: l2 = 0, l1 = " in done.stdout
    assert done.stdout.count("  chosen") == 1
    path = json.loads(run("fit", file, "--json").stdout)["model"]["path"]
    assert path["chosen"] in path["points"]


def test_report_writes_a_page_and_a_sheet_for_a_privacy_officer(job: Callable[..., str], tmp_path: Path) -> None:
    saved, page, sheet = (str(tmp_path / name) for name in ("run", "page.html", "sheet.md"))
    run("fit", job(), "--out", saved)
    written = run("report", saved, "-o", page, "--dpia", sheet)
    assert (written.returncode, written.stdout) == (0, f"Written to {page}\nWritten to {sheet}\n")
    assert Path(page).read_text().startswith("<!doctype html>")
    assert "## Who learned what about whom" in Path(sheet).read_text()
    beside = run("report", saved, saved, "-o", page, "--json")
    assert json.loads(beside.stdout) == {"page": page}
    assert "The runs beside each other" in Path(page).read_text()
    several = run("report", saved, saved)
    assert (several.returncode, "Add -o page.html" in several.stderr) == (3, True)
    refused = run("report", saved, "-o", job())
    assert (refused.returncode, "would be lost" in refused.stderr) == (3, True)


def test_report_shows_a_saved_run_again_and_its_disclosure_sheet(job: Callable[..., str], tmp_path: Path) -> None:
    saved = str(tmp_path / "run")
    fitted = run("fit", job(), "--out", saved)
    again = run("report", saved)
    assert (again.returncode, again.stdout) == (0, fitted.stdout)
    sheet = run("report", saved, "--disclosure")
    assert sheet.stdout.startswith("Features or labels of single rows were shown: to server features of")
    read = json.loads(run("report", saved, "--disclosure", "--json").stdout)
    assert sheet.stdout.replace("\n", " ").startswith(read["headline"])
    assert {line["what"] for line in read["lines"]} >= {"features", "labels", "scores"}
    assert json.loads(run("report", saved, "--json").stdout)["bytes"] > 0
    missing = run("report", str(tmp_path / "nothing"))
    assert missing.returncode == 3
    assert "Add --disclosure" in run("report", job()).stderr
    planned = run("report", job(), "--disclosure")
    assert (planned.returncode, planned.stderr.count("Warning")) == (0, 0)
    assert planned.stdout.startswith("Features or labels of single rows would be shown: to server features of bank,")


def test_a_committed_run_is_audited_from_its_folder(job: Callable[..., str], tmp_path: Path) -> None:
    saved, file = tmp_path / "run", job('kind = "importance"', 'kind = "importance"\ndraws = "committed"')
    assert run("fit", file, "--out", str(saved), "--spot-check", "3").returncode == 0
    found = run("spot-check", str(saved))
    assert (found.returncode, found.stdout.splitlines()[0]) == (0, "Nothing was found wrong.")
    assert min(json.loads(run("spot-check", str(saved), "--json").stdout)["opened"].values()) >= 3
    evidence = json.loads((saved / "evidence.json").read_text())
    evidence["parties"]["shop"]["rows"][0] += 1
    (saved / "evidence.json").write_text(json.dumps(evidence))
    caught = run("spot-check", str(saved))
    assert caught.returncode == 4
    assert caught.stdout == ""
    assert "RemoteProtocolError" in caught.stderr
    assert run("coreset", file, "--spot-check", "2").returncode == 0
    plain = run("fit", job('draws = "committed"', 'draws = "stratified"'), "--spot-check", "3")
    assert plain.returncode == 3
    assert "commits to nothing" in plain.stderr


def test_secure_scores_from_a_job_file(job: Callable[..., str]) -> None:
    done = run("coreset", job(old='kind = "importance"', new='kind = "importance"\nscores = "secure"'))
    assert done.returncode == 0
    assert "sums of scores" in done.stdout
    warned = run("fit", job())
    assert warned.returncode == 0
    assert warned.stderr.startswith("warning: DisclosureWarning\nScores are summed in secret, but Central shows")
    assert ".py:" not in warned.stderr


def test_coreset_stops_before_the_model(job: Callable[..., str]) -> None:
    found = json.loads(run("coreset", job(), "--json").stdout)
    assert found["model"] is None
    assert found["units"] == 200 + 2 * 200 * 3 + 2 * 3


def test_even_draws_from_a_job_file(job: Callable[..., str]) -> None:
    found = json.loads(run("coreset", job("size = 200", "size = 200\nuniform_share = 0.25"), "--json").stdout)
    assert found["sampler"]["uniform_share"] == 0.25
    assert found["diagnostics"]["largest_weight"] <= 800 / (200 * 0.25)


def test_kmeans_from_a_job_file(job: Callable[..., str]) -> None:
    job('kind = "regression"', 'kind = "kmeans"\nn_clusters = 3')
    job("l2 = 0.0 ", "# l2 = 0.0 ")
    done = run("fit", job("fit_intercept = true", ""))
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[0].split() == ["feature", "centre", "0", "centre", "1", "centre", "2"]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            "size = 200",
            "sise = 200",
            'job.toml: [sampler] with kind = "importance" has no option `sise`. Did you mean `size`?',
        ),
        ("size = 200", "", 'job.toml: [sampler] with kind = "importance" lacks `size`. Add it.'),
        ("size = 200", "size = 3", "size is 3, and so few rows do not determine 7 coefficients"),
        ("size = 200", "size = 0", "size must be a whole number from 1 to"),
        ("size = 200", 'size = "many"', "sampler.size must be a whole number, not text. Correct that value."),
        (
            'kind = "importance"',
            'kind = "best"',
            '[sampler] knows no kind = "best". Write one of "importance", "uniform", "all".',
        ),
        (
            'kind = "importance"',
            'kind = "improtance"',
            '[sampler] knows no kind = "improtance". Did you mean "importance"?',
        ),
        ('kind = "importance"', "", '[sampler] lacks `kind`. Write one of "importance", "uniform", "all".'),
        ('name = "telephone"', 'nmae = "telephone"', "[[party]] number 2 has no option `nmae`. Did you mean `name`?"),
        ("seed = 0", "sede = 0", "the top level has no option `sede`. Did you mean `seed`?"),
        ("seed = 0", 'parties = ["bank"]', "use `colonnade server`"),
        ("seed = 0", "seed = -1", "seed must be a whole number"),
        ("l2 = 0.0 ", "l2 = -1.0 ", "l2 must be a number from 0 to 1e+100"),
        ("l2 = 0.0 ", 'l2 = "much" ', 'Write a number, or "cv"'),
        ("l2 = 0.0 ", 'l2 = "cv"\nl1 = "cv" ', "Cross-validation chooses one penalty"),
        ('file = "shop.csv"', 'file = "missing.csv"', "missing.csv"),
        ('label = "card_spending"', 'label = "spending"', "card_spending"),
        ('label = "card_spending"', "", "none of bank, telephone, shop holds one"),
        ('name = "shop"', 'name = "bank"', "Two parties are called 'bank'"),
        ("[task]", "[task", "is not TOML"),
        ('key = "customer"            #', "#", "customer"),
        ('# never = ["features"]', 'never = ["everything"]', "cannot name 'everything'"),
    ],
)
def test_bad_jobs_exit_3_with_one_clear_message(job: Callable[..., str], old: str, new: str, message: str) -> None:
    done = run("fit", job(old, new))
    assert done.returncode == 3
    assert message in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""


def test_a_job_reads_files_of_other_countries_and_says_so(job: Callable[..., str]) -> None:
    file = job()
    expected = json.loads(run("fit", file, "--json").stdout)["model"]
    shop = Path(file).parent / "shop.csv"
    shop.write_text(shop.read_text().replace(",", ";").replace(".", ","), encoding="utf-16")
    done = run("fit", file, "--json")
    assert "shop.csv: separated by semicolons, decimal comma, UTF-16." in done.stderr
    assert json.loads(done.stdout)["model"] == expected


def test_a_job_reads_a_database(job: Callable[..., str]) -> None:
    pytest.importorskip("adbc_driver_sqlite", reason="the extra sqlite is not installed")
    file = job()
    expected = json.loads(run("fit", file, "--json").stdout)["model"]
    folder = Path(file).parent
    with sqlite3.connect(folder / "shop.sqlite") as connection:
        pd.read_csv(folder / "shop.csv").to_sql("shop", connection, index=False)
    connection.close()
    text = Path(file).read_text()
    assert 'file = "shop.csv"' in text
    sql = 'query = "select * from shop order by rowid"'
    Path(file).write_text(text.replace('file = "shop.csv"', f'{sql}\ndatabase_env = "SHOP"'))
    refused = run("fit", file)
    assert refused.returncode == 3
    assert "the environment variable SHOP is not set" in refused.stderr
    done = run("fit", file, "--json", SHOP=f"sqlite:{folder / 'shop.sqlite'}")
    assert json.loads(done.stdout)["model"] == expected


def test_a_missing_job_file_exits_3() -> None:
    done = run_afresh("fit", "nowhere.toml")
    assert done.returncode == 3
    assert "Cannot read nowhere.toml" in done.stderr


def test_a_refusal_exits_6_with_the_partys_reason(job: Callable[..., str]) -> None:
    done = run("fit", job('# never = ["features"]', 'never = ["features"]'))
    assert done.returncode == 6
    refused = "Party 'shop' did not answer OpenJob: its owner's policy never reveals features, which a Columns would"
    assert refused in done.stderr


def test_names_cannot_write_to_the_terminal(job: Callable[..., str], tmp_path: Path) -> None:
    path = job('name = "shop"', 'name = "sh\\u001b[2Jop"')
    shop = tmp_path / "bank" / "shop.csv"
    shop.write_text(shop.read_text().replace("basket", "bas\x1b]0;pwned\x07ket :car:", 1))
    done = run("fit", path)
    assert done.returncode == 0, done.stderr
    assert "\x1b" not in done.stdout + done.stderr
    assert ":car:" in done.stdout
    names = json.loads(run("fit", path, "--json").stdout)["model"]["feature_names_in_"]
    assert names[-1] == "bas\x1b]0;pwned\x07ket :car:", "JSON escapes what is in the data, and keeps it"


def test_evaluate_and_predict_with_a_saved_run(job: Callable[..., str], tmp_path: Path) -> None:
    saved = str(tmp_path / "run")
    run("fit", job(), "--out", saved)
    whole = json.loads(run("evaluate", job(), saved, "--json").stdout)
    assert whole["n_evaluated"] == 800
    assert 0.9 < whole["r2"] < 1.0
    assert whole["units"] == 6 + 3 * 800 + 1
    sample = json.loads(run("evaluate", job(), saved, "--rows", "200", "--json").stdout)
    assert sample["cost_interval"][0] < whole["cost"] < sample["cost_interval"][1]
    rounded = json.loads(run("evaluate", job(), saved, "--bits", "16", "--json").stdout)
    assert whole["rounded_by"] is None
    assert whole["bytes"] - rounded["bytes"] > 0.7 * 3 * 800 * 8, "of three parties' numbers; the job sheet stays"
    assert rounded["cost"] == pytest.approx(whole["cost"], rel=1e-3)
    few = run("predict", job(), saved, "--bits", "3")
    assert (few.returncode, few.stdout) == (3, "")
    assert "bits must be a whole number from 4 to 32, got 3" in few.stderr
    assert "r2" in run("evaluate", job(), saved).stdout
    run("predict", job(), saved, "--out", str(tmp_path / "p.csv"))
    lines = (tmp_path / "p.csv").read_text().splitlines()
    assert (lines[0], len(lines)) == ("row,prediction", 801)
    run("predict", job(), saved, "--out", str(tmp_path / "p.parquet"))
    pd.testing.assert_frame_equal(pd.read_parquet(tmp_path / "p.parquet"), pd.read_csv(tmp_path / "p.csv"))
    assert run("predict", job(), saved).stdout.splitlines() == lines
    one = json.loads(run("predict", job(), saved, "--row", "5", "--row", "3", "--json").stdout)
    assert one["rows"] == [5, 3]
    both = run("predict", job(), saved, "--row", "5", "--row", "3", "--json", "--out", str(tmp_path / "few.txt"))
    assert json.loads(both.stdout) == one
    assert both.stderr.endswith("few.txt, as CSV\n")
    pairs = zip(one["rows"], one["predictions"], strict=True)
    due = ["row,prediction", *(f"{row},{value}" for row, value in pairs)]
    assert (tmp_path / "few.txt").read_text().splitlines() == due
    # Of few rows and of many, products may round differently.
    assert one["predictions"][0] == pytest.approx(float(lines[6].removeprefix("5,")), rel=1e-14)


def test_a_classification_from_fit_to_predictions(job: Callable[..., str], tmp_path: Path) -> None:
    bank, saved, out = tmp_path / "bank" / "bank.csv", str(tmp_path / "run"), tmp_path / "predictions.csv"
    file = job('kind = "regression"', 'kind = "classification"')
    table = pd.read_csv(bank)
    big = np.where(table["card_spending"] > table["card_spending"].median(), "big, very", "small")
    table.assign(card_spending=big).to_csv(bank, index=False)
    fitted = run("fit", job("l2 = 0.0", "l2 = 1e-4"), "--test-fraction", "0.3", "--out", saved)
    assert fitted.returncode == 0, fitted.stderr
    assert "On 240 held-out rows: AUC 0.9" in fitted.stdout
    printed = run("evaluate", file, saved)
    assert printed.returncode == 0, printed.stderr
    for words in ("accuracy", "auc_interval", "taken for big, very", "chance of small", "share that came"):
        assert words in printed.stdout
    assert "by_class" not in printed.stdout
    told = json.loads(run("evaluate", file, saved, "--by", "bank", "--json").stdout)
    assert (told["n_evaluated"], [line["name"] for line in told["by_class"]]) == (240, ["big, very", "small"])
    assert run("predict", file, saved, "--out", str(out)).returncode == 0
    written = pd.read_csv(out)
    assert written.columns.tolist() == ["row", "class", "probability_big, very", "probability_small"]
    assert (written["class"] == big).mean() > 0.8
    found = json.loads(run("predict", file, saved, "--row", "7", "--json").stdout)
    assert found["predictions"] == [written["class"][7]]
    assert found["probabilities"] == [[written["probability_big, very"][7], written["probability_small"][7]]]
    assert found["classes"] == ["big, very", "small"]
    delivered = tmp_path / "shop.csv"
    assert run("predict", file, saved, "--to", "shop", "--out", str(delivered)).returncode == 0
    assert pd.read_csv(delivered)["class"].tolist() == written["class"].tolist()


def test_what_is_found_of_a_run_s_own_rows_is_kept_with_it(job: Callable[..., str], tmp_path: Path) -> None:
    folder = tmp_path / "run"
    saved = str(folder)
    run("fit", job(), "--test-fraction", "0.25", "--out", saved)
    fitted = cn.Run.load(folder)
    assert fitted.findings.evaluation.n_evaluated == 200
    assert "On 200 held-out rows: R2" in run("report", saved).stdout
    run("evaluate", job(), saved, "--test-fraction", "0.5")  # other rows than those held out
    assert cn.Run.load(folder).findings == fitted.findings
    told = run("certify", job(), saved)
    assert "Kept with the run" in told.stderr
    certified = cn.Run.load(folder)
    assert certified.findings.certificate is not None
    assert certified.findings.evaluation == fitted.findings.evaluation
    assert "Certificate: cost" in run("report", saved).stdout
    again = run("evaluate", job(), saved, "--rows", "50")  # a sample is not in the place of all
    assert "Kept with the run" not in again.stderr
    assert cn.Run.load(folder).findings == certified.findings
    again = run("evaluate", job(), saved)
    assert "Kept with the run" in again.stderr


def test_evaluate_and_certify_say_on_which_table_they_ran(job: Callable[..., str], tmp_path: Path) -> None:
    """Rows are called held out only in the table, and by the split, that the model was learned with."""
    saved, fraction = str(tmp_path / "run"), ("--test-fraction", "0.3")
    run("fit", job(), *fraction, "--out", saved)
    held_out, chosen = ("Rows held out by HoldOut(fraction=0.3, ", "Rows chosen by HoldOut(fraction=0.3, ")

    def first_line(*options: str) -> str:
        done = run("evaluate", job(), saved, *options)
        assert done.returncode == 0, done.stderr
        return done.stdout.partition("\n")[0]

    assert first_line().startswith(f"The table that the model was learned from. {held_out}")
    assert "Rows chosen by HoldOut(fraction=0.2, seed=0): the model may have seen" in first_line(
        "--test-fraction", "0.2"
    )
    assert "; of the table that the run learned from; " in run("certify", job(), saved).stdout
    shop = tmp_path / "bank" / "shop.csv"
    whole = shop.read_text()
    shop.write_text(whole.replace("72.11", "73.11", 1))
    for command in ("evaluate", "certify"):
        done = run(command, job(), saved)
        assert (done.returncode, done.stdout) == (3, "")
        assert "AlignmentError\nThe table of shop changed since the model was learned" in done.stderr
        assert run(command, job(), saved, "--changed", "maybe").returncode == 2
    assert first_line("--changed", "allow").startswith(f"The table CHANGED since the model was learned. {chosen}")
    assert "; of a table that CHANGED since the run; " in run("certify", job(), saved, "--changed", "allow").stdout
    for name in ("bank", "telephone", "shop"):
        path = tmp_path / "bank" / f"{name}.csv"
        path.write_text("\n".join(path.read_text().splitlines()[:-1]) + "\n")
    others = "A table with other rows than the one that the model was learned from."
    assert first_line() == f"{others} All rows count.", "none of them was held out"
    assert first_line("--test-fraction", "0.3").startswith(f"{others} {chosen}")
    assert "The run was made of 800 rows; these parties hold 799" in run("certify", job(), saved).stderr


def test_of_a_run_of_an_earlier_version_the_table_is_not_known(job: Callable[..., str], tmp_path: Path) -> None:
    saved = tmp_path / "run"
    run("fit", job(), "--out", str(saved))
    for name, field in (("run.json", "tables"), ("model.json", "learned_from")):
        record = json.loads((saved / name).read_text())
        del record[field]
        (saved / name).write_text(json.dumps(record))
    told = run("evaluate", job(), str(saved)).stdout
    assert told.startswith("Whether this is the table that the model was learned from is not known. All rows count.")
    assert json.loads(run("certify", job(), str(saved), "--json").stdout)["table"] is None
    assert json.loads(run("report", str(saved), "--json").stdout)["tables"] is None


def test_evaluate_and_predict_with_a_saved_model(job: Callable[..., str], tmp_path: Path) -> None:
    run("fit", job(), "--out", str(tmp_path / "run"))
    model = str(cn.LinearModel.load(tmp_path / "run").save(tmp_path / "model"))
    for command in ("evaluate", "predict"):
        of_run, of_model = (run(command, job(), str(tmp_path / name), "--json").stdout for name in ("run", "model"))
        assert of_run == of_model != ""
    (tmp_path / "model" / "model.arrow").write_bytes(b"garbage")
    done = run("predict", job(), model)
    assert (done.returncode, done.stdout) == (3, "")
    assert "is not a readable model: model.arrow: " in done.stderr
    assert "Traceback" not in done.stderr


def test_evaluate_and_predict_say_what_is_wrong(job: Callable[..., str], tmp_path: Path) -> None:
    saved = str(tmp_path / "run")
    run("coreset", job(), "--out", saved)
    assert "is a coreset without a model" in run("predict", job(), saved).stderr
    run("fit", job(), "--out", saved)
    assert "There is no row 800" in run("predict", job(), saved, "--row", "800").stderr
    assert run("predict", job(), str(tmp_path / "nowhere")).returncode == 3
    assert run("predict", job(), saved, "--out", str(tmp_path)).returncode == 3
    changed = job('name = "shop"', 'name = "store"')
    shop = tmp_path / "bank" / "shop.csv"
    whole = shop.read_text()
    shop.write_text(whole.replace("basket", "cart", 1))
    told = "does not fit party 'store': where the model has 'basket', the party has 'cart'"
    assert told in run("evaluate", changed, saved).stderr
    other_order = job('name = "store"', 'name = "shop"')
    shop.write_text("\n".join(",".join(line.split(",")[::-1]) for line in whole.splitlines()))
    told = "does not fit party 'shop': where the model has 'purchases', the party has 'basket'. Put its columns in"
    assert told in run("evaluate", other_order, saved).stderr


def test_what_a_job_reads_is_not_written_over(job: Callable[..., str], tmp_path: Path) -> None:
    """`predict --out` once replaced a party's table by predictions."""
    saved = str(tmp_path / "run")
    run("fit", job(), "--out", saved)
    for name in ("shop.csv", "../bank/shop.csv", "job.toml"):
        file = tmp_path / "bank" / name
        before = file.read_bytes()
        for command in (("predict", job(), saved), ("plan", job(), "--budget", "9000")):
            done = run(*command, "--out", str(file))
            assert (done.returncode, done.stdout) == (3, ""), done.stderr
            assert "is a file that the job reads, or lies in a folder that it reads. Choose another" in done.stderr
        assert file.read_bytes() == before


@pytest.mark.parametrize("command", ["fit", "coreset"])
def test_no_run_is_saved_among_files_of_a_table(job: Callable[..., str], tmp_path: Path, command: str) -> None:
    """The folder could not be read as a table any more."""
    shop = tmp_path / "bank" / "shop"
    path = job("shop.csv", "shop")
    shop.mkdir()
    done = run(command, path, "--out", str(shop / "runs" / "first"))
    assert (done.returncode, done.stdout) == (3, ""), done.stderr
    assert "lies in a folder that it reads. Choose another place" in done.stderr
    assert not [*shop.iterdir()]


@pytest.mark.parametrize(
    ("out", "also", "told"),
    [
        ("shop/more.parquet", (), "is a file that the job reads, or lies in a folder that it reads"),
        ("missing/p.csv", (), "Nothing can be written to .*: it is a folder, or its folder does not exist"),
        ("p.txt", ("--to", "shop"), "must end in .csv or .parquet"),
    ],
)
def test_where_predictions_cannot_be_written_is_said_before_anything_is_sent(
    job: Callable[..., str], tmp_path: Path, out: str, also: tuple[str, ...], told: str
) -> None:
    saved, shop = str(tmp_path / "run"), tmp_path / "bank" / "shop"
    run("fit", job(), "--out", saved)
    shop.mkdir()
    table = pa.csv.read_csv(shop.parent / "shop.csv")
    pq.write_table(table, shop / "part.parquet")
    done = run("predict", job("shop.csv", "shop"), saved, "--out", str(shop.parent / out), *also)
    assert (done.returncode, done.stdout) == (3, "")
    assert re.search(told, done.stderr), done.stderr
    assert "Delivered" not in done.stderr
    assert [each.name for each in shop.iterdir()] == ["part.parquet"]


def test_diagnose_says_what_was_measured_what_it_means_and_what_to_do(job: Callable[..., str]) -> None:
    done = run("diagnose", job())
    assert done.returncode == 0, done.stderr
    for words in (
        "gamma = ",
        "zeta = ",
        "epsilon of the coreset of 200 rows",
        "What to do: The parties' columns overlap",
    ):
        assert words in done.stdout
    assert "The server was shown: schema, totals, row ids, scores, features, labels" in done.stdout
    assert "AssumptionWarning" not in done.stderr, "it is printed with the rest"
    found = json.loads(run("diagnose", job(), "--json", "--rows", "500", "--seed", "3").stdout)
    assert found["rows"] == 500
    assert found["concerns"]
    exact = json.loads(run("diagnose", job(), "--json", "--exact").stdout)
    assert (exact["exact"], exact["units"], exact["epsilon"]["size"]) == (True, 0, 200)
    assert exact["robustness"]["share"] < 0.2
    assert run("diagnose", job(), "--rows", "3").returncode == 3


def test_diagnose_k_means(job: Callable[..., str]) -> None:
    job('kind = "regression"', 'kind = "kmeans"\nn_clusters = 3')
    job("l2 = 0.0 ", "# l2 = 0.0 ")
    done = run("diagnose", job("fit_intercept = true", ""), "--pairs", "200")
    assert done.returncode == 0, done.stderr
    assert "tau = " in done.stdout


def test_many_centres_are_all_shown(job: Callable[..., str]) -> None:
    job('kind = "regression"', 'kind = "kmeans"\nn_clusters = 30')
    job("l2 = 0.0 ", "# l2 = 0.0 ")
    done = run("fit", job("fit_intercept = true", ""))
    parts = done.stdout.partition("ImportanceSampling")[0].strip().split("\n\n")
    assert re.findall(r"centre \d+", "\n".join(parts)) == [f"centre {number}" for number in range(30)]
    assert sum(len(part.splitlines()[1].split()) - 1 for part in parts) == 30
    assert max(map(len, "\n".join(parts).splitlines())) <= 80


def test_usage_errors_exit_2(job: Callable[..., str]) -> None:
    assert run("fit").returncode == 2
    assert run("fit", job(), "--sede", "1").returncode == 2
    assert run("fit", job(), "--seed", "-1").returncode == 2
    assert run("nonsense").returncode == 2


def test_nothing_is_half_done(job: Callable[..., str], tmp_path: Path) -> None:
    run("fit", job("size = 200", "size = 0"), "--out", str(tmp_path / "run"))
    assert not (tmp_path / "run").exists()


def test_where_to_save_is_checked_before_the_work(job: Callable[..., str], tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("years of work")
    for out, message in ((tmp_path, "is not a saved run"), (tmp_path / "thesis.txt" / "run", "cannot be saved")):
        done = run("fit", job(), "--out", str(out))
        assert done.returncode == 3
        assert message in done.stderr
        assert done.stdout == ""


def test_one_bracket_too_few(tmp_path: Path) -> None:
    (tmp_path / "job.toml").write_text(
        '[task]\nkind = "kmeans"\nn_clusters = 2\n[sampler]\nkind = "all"\n[party]\nname = "a"'
    )
    assert "Write [[party]], with two brackets" in run("fit", str(tmp_path / "job.toml")).stderr


def test_doctor_and_version() -> None:
    report = json.loads(run("doctor", "--json").stdout)
    assert {"name": "numpy", "needed_for": "core"}.items() <= next(
        package for package in report["packages"] if package["name"] == "numpy"
    ).items()
    assert all(package["installed"] for package in report["packages"] if package["needed_for"] == "core")
    assert "pandas" in run("doctor").stdout
    assert run("version").stdout.startswith("colonnade ")
    assert json.loads(run("version", "--json").stdout).keys() == {"colonnade", "numpy", "python"}


def test_a_plan_is_printed_saved_and_carried_out(job: Callable[..., str], tmp_path: Path) -> None:
    file = tmp_path / "plan.json"
    done = run("plan", job(), "--budget", "8000", "--out", str(file))
    assert done.returncode == 0, done.stderr
    for words in ("Expected excess: ", "By phase: opening ", "What other budgets would buy:", "chosen"):
        assert words in done.stdout
    assert "Saved to" in done.stderr
    plan = cn.Plan.load(file)
    assert plan.budget_bytes == 8000
    fitted = run("fit", job(), "--plan", str(file), "--out", str(tmp_path / "run"), "--excess")
    assert fitted.returncode == 0, fitted.stderr
    assert f"{plan.bytes:,}" in fitted.stdout.split("planned    actual")[-1]
    saved = cn.Run.load(tmp_path / "run")
    assert saved.ledger.bytes <= 8000
    assert saved.facts["planned_bytes"] == plan.bytes
    found = json.loads(run("fit", job(), "--plan", str(file), "--json", "--seed", "3").stdout)
    assert (found["seed"], found["diagnostics"]["sent_bytes"]) == (3, found["bytes"])


def test_a_plan_as_json_by_target_and_seed(job: Callable[..., str]) -> None:
    first, again, other = (
        json.loads(run("plan", job(), "--target", "0.05", "--seed", seed, "--json").stdout) for seed in ("1", "1", "2")
    )
    for found in (first, again):
        del found["seconds"], found["fingerprint"]
    assert first == again
    assert first["pilot"] != other["pilot"]
    assert first["chosen"]["excess"]["mean"] <= 0.05
    assert first["target_excess"] == 0.05


def test_plans_say_what_is_wrong(job: Callable[..., str], tmp_path: Path) -> None:
    for arguments, message in (
        (("--budget", "-1"), "budget_bytes must be a whole number"),
        (("--budget", "900"), "Allow "),
        (("--target", "nan"), "target_excess must be a number"),
        (("--budget", "8000", "--out", str(tmp_path)), "Nothing can be written to"),
        (("--budget", "8000", "--out", str(tmp_path / "no" / "plan.json")), "Nothing can be written to"),
    ):
        done = run("plan", job(), *arguments)
        assert (done.returncode, done.stdout) == (3, "")
        assert message in done.stderr
    for limits in ((), ("--budget", "5000", "--target", "0.1")):
        assert (run("plan", job(), *limits).returncode, "one limit" in run("plan", job(), *limits).stderr) == (2, True)
    file = tmp_path / "plan.json"
    run("plan", job(), "--budget", "8000", "--out", str(file))
    assert "commits to nothing" in run("fit", job(), "--plan", str(file), "--spot-check", "2").stderr
    assert "The job holds out" in run("fit", job(), "--plan", str(file), "--test-fraction", "0.2").stderr
    assert "The plan is for Regression(l2=0.0" in run("fit", job("l2 = 0.0 ", "l2 = 0.1 "), "--plan", str(file)).stderr
    file.write_text(file.read_text().replace('"seed": 0', '"seed": 1'))
    done = run("fit", job(), "--plan", str(file))
    assert (done.returncode, done.stdout) == (3, "")
    assert "was changed after it was written" in done.stderr


PAGES = [
    *COMMANDS,
    *(f"{name} {each.name}" for name, group in GROUPS.items() for each in group.app.registered_commands),
]


@pytest.mark.parametrize("page", PAGES)
def test_help_teaches(page: str) -> None:
    done = run(*page.split(), "--help", COLUMNS="80")
    assert done.returncode == 0
    assert "--json" in done.stdout
    assert f"Example: colonnade {page}" in done.stdout
    assert "<bool>" not in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 80


@pytest.mark.parametrize("group", GROUPS)
def test_groups_have_pages_and_brackets_stay(group: str) -> None:
    done = run(group, "--help", COLUMNS="80")
    assert (done.returncode, "<bool>" in done.stdout) == (0, False)
    assert group != "policy" or "Write a [policy] for a party.toml" in done.stdout


def test_the_version_is_told_two_ways() -> None:
    (short,), long = run("--version").stdout.splitlines(), run("version").stdout.splitlines()
    assert short == long[0]


def test_errors_are_json_where_results_are(job: Callable[..., str], tmp_path: Path) -> None:
    done = run("fit", str(tmp_path / "no.toml"), "--json")
    told = json.loads(done.stdout)
    assert told.keys() == {"error", "message", "notes", "exit_code"}
    assert (done.returncode, told["exit_code"], told["error"]) == (3, 3, "InputError")
    assert done.stderr == f"error: InputError\n{told['message']}\n"
    refused = run("fit", job('name = "shop"', 'name = "shop"\nnever = ["scores"]'), "--json")
    assert json.loads(refused.stdout)["error"] == "PolicyRefusedError"
    assert json.loads(refused.stdout)["exit_code"] == refused.returncode == 6


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("fit", "--json"), "Missing argument 'JOB.toml'"),
        (("fit", "job.toml", "--json", "--sede", "1"), "No such option: --sede"),
        (("nonsense", "--json"), "No such command 'nonsense'"),
        (("plan", "job.toml", "--json"), "one limit"),
    ],
)
def test_wrong_usage_is_json_too(arguments: tuple[str, ...], message: str) -> None:
    done = run(*arguments)
    told = json.loads(done.stdout)
    assert (done.returncode, told["exit_code"], told["error"]) == (2, 2, "UsageError")
    assert message in told["message"]
    assert message in done.stderr


def test_what_exits_otherwise_is_as_it_was_with_json(job: Callable[..., str]) -> None:
    assert run("version", "--json").returncode == 0
    done = run("check", job('label = "card_spending"', 'label = "nothing"'), "--json")
    assert (done.returncode, len(done.stdout.splitlines())) == (3, 1)


def test_on_a_terminal_errors_are_in_colour_and_words_stay_whole(tmp_path: Path) -> None:
    arguments = ("fit", str(tmp_path / "no.toml"))
    code, coloured = run_on_terminal(*arguments)
    assert (code, "\x1b[1;31merror: InputError\x1b[0m\n" in coloured) == (3, True)
    assert max(map(len, coloured.replace(str(tmp_path), "").splitlines())) <= 80
    plain = run_on_terminal(*arguments, NO_COLOR="1")[1]
    assert ("error: InputError\n" in plain, "\x1b" in plain) == (True, False)
    assert "\x1b" not in run(*arguments).stderr


def test_summary_is_a_table_or_json(job: Callable[..., str], tmp_path: Path) -> None:
    saved = str(tmp_path / "run")
    run("fit", job(), "--out", saved)
    done = run("summary", saved, "--of", "table", "--confidence", "0.9")
    assert (done.returncode, done.stderr) == (0, "")
    assert "Coefficients for all rows of the table; sandwich (HC2) standard errors, 90 % intervals" in done.stdout
    assert re.search(r" roaming_ +[\d.].*\n +minutes$", done.stdout, flags=re.MULTILINE)
    found = json.loads(run("summary", saved, "--json").stdout)
    assert found["of"] == "population"
    lines = found["coefficients"]
    assert [line["party"] for line in lines[:2]] == [None, "bank"]
    assert all(line["low"] < line["coefficient"] < line["high"] for line in lines)
    refused = run("summary", saved, "--of", "table", "--covariance", "classical")
    assert (refused.returncode, refused.stdout) == (3, "")
    assert run("summary", saved, "--of", "rows").returncode == 2


def test_certify_says_it_in_words_and_in_json(job: Callable[..., str], tmp_path: Path) -> None:
    file, saved = job(), str(tmp_path / "run")
    run("fit", file, "--out", saved)
    done = run("certify", file, saved, "--rows", "300")
    assert done.returncode == 0
    assert "with 95 % confidence" in done.stdout
    assert "of it for this check" in done.stdout
    assert re.search(r"^certifying  5 +Audited .*\n +Predictions ", done.stdout, flags=re.MULTILINE)
    found = json.loads(run("certify", file, saved, "--rows", "300", "--json").stdout)
    assert 200 < found["rows"] <= 300, "each row once"
    assert found["trusted"] is True
    assert found["cost_interval"][0] < found["cost"] < found["cost_interval"][1]
    other = json.loads(run("certify", file, saved, "--rows", "300", "--json", "--seed", "5").stdout)
    assert other["cost"] != found["cost"]
    refused = run("certify", file, saved, "--rows", "20")
    assert refused.returncode == 3
    assert "70 rows or more" in refused.stderr
