"""From raw CSV files to predictions by key, by the command alone: equal to pandas.merge and a scikit-learn pipeline."""

import json
import re
import shutil
import signal
from pathlib import Path

import numpy as np
import onnx
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.metrics import mean_absolute_error, mean_squared_error, r2_score
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder

import colonnade as cn
import command
from network_trial import Trial, free_port
from onnx_trial import fed, run_onnx, told

RAW = Path(__file__).parents[2] / "examples" / "raw"
L2 = 0.05
LEVELS = ("clerk", "cook", "driver", "judge", "nurse", "painter", "teacher", "pilot", "basic", "family", "travel")
JOBS = f"""
[[job]]
do = "fit"
out = "plain"
task = {{ kind = "regression" }}
sampler = {{ kind = "all" }}
solver = {{ kind = "gram" }}
split = {{ kind = "fraction", fraction = 0.2 }}

[[job]]
do = "evaluate"
model = "plain"
out = "plain.json"

[[job]]
do = "fit"
out = "ridge"
task = {{ kind = "regression", l2 = {L2} }}
sampler = {{ kind = "all" }}
solver = {{ kind = "gram" }}
split = {{ kind = "fraction", fraction = 0.2 }}

[[job]]
do = "evaluate"
model = "ridge"
out = "ridge.json"

[[job]]
do = "predict"
model = "plain"
to = "shop"
"""
NEW_JOBS = """
[[job]]
do = "predict"
model = "plain"
to = "shop"

[[job]]
do = "predict"
model = "ridge"
to = "bank"
"""


class RawTables(Trial):
    """Three organisations that start from CSV files; every file that they run by is the command's own."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.port, self._processes = folder, free_port(), []
        for file in RAW.glob("*.csv"):
            shutil.copy(file, folder)
        self.party_files = {name: folder / f"{name}.toml" for name in self.names}

    def command(self, *arguments: str) -> str:
        """Run a command that needs nobody else."""
        done = command.run(*arguments)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def new_party(self, name: str, *options: str) -> None:
        server = ("--server", f"127.0.0.1:{self.port}", "--out", str(self.party_files[name]))
        self.command("new", "party", str(self.folder / f"{name}.csv"), *options, *server)

    def new_federation(self, name: str, jobs: str) -> Path:
        path = self.folder / name
        parties = [word for name in self.names for word in ("--party", name)]
        self.command("new", "federation", *parties, "--out", str(path))
        path.write_text(path.read_text().replace("7143", str(self.port)) + jobs)
        return path

    def together(self, *commands: tuple[str, ...]) -> dict[str, str]:
        """Let the parties take part in commands of a server, one after another; give what each party said."""
        parties = {name: self.start("party", str(path)) for name, path in self.party_files.items()}
        for arguments in commands:
            server = self.start(*arguments)
            said, _ = server.communicate(timeout=180)
            assert server.returncode == 0, said
        for party in parties.values():
            party.send_signal(signal.SIGINT)
        return {name: party.communicate(timeout=60)[0] for name, party in parties.items()}


def test_from_raw_tables_to_predictions_by_key(tmp_path: Path) -> None:
    with RawTables(tmp_path) as raw:
        raw.new_party("bank")
        raw.new_party("telephone")
        raw.new_party("shop", "--label", "spending")
        date = 'opened = { kind = "date", parts = ["year", "month"], format = "%d.%m.%Y" }'
        text, n = re.subn("^(# )?opened = .*$", date, raw.party_files["bank"].read_text(), flags=re.M)
        assert n == 1
        raw.party_files["bank"].write_text(text)
        for path in raw.party_files.values():
            assert "Nothing stops it." in raw.command("check", str(path))
        raw.command("certs", "new", str(raw.folder / "certs"), *[w for name in raw.names for w in ("--party", name)])
        federation = raw.new_federation("federation.toml", JOBS)
        learned = raw.together(("align", str(federation)), ("server", str(federation)))
        for name in raw.names:
            text = raw.party_files[name].read_text().replace(f'"{name}.csv"', f'"{name}-new.csv"')
            text = re.sub("^label = .*\n", "", text.replace("-predictions", "-new-predictions"), flags=re.M)
            raw.party_files[name] = raw.folder / f"{name}-new.toml"
            raw.party_files[name].write_text(text)
        federation = raw.new_federation("federation-new.toml", NEW_JOBS)
        of_new_rows = raw.together(("align", str(federation), "--again"), ("server", str(federation)))
    train, test = halves(raw.folder)
    assert (len(train), len(test)) == (1015, 254)
    for name, l2, party in (("plain", 0.0, "shop"), ("ridge", L2, "bank")):
        pooled = pipeline(train, l2)
        check_objective(raw.folder / name, pooled, train, l2)
        check_evaluation(raw.folder / f"{name}.json", pooled, test)
        check_predictions(raw.folder / f"{party}-new-predictions.csv", pooled)
    assert re.search(r"job: \d rows have levels that were not there", of_new_rows["bank"])
    check_levels(raw.folder, learned)
    check_exported_parts(raw)


def merged(end: str = "") -> pd.DataFrame:
    """Do by hand what nobody can do who has one of the tables only."""
    bank = pd.read_csv(RAW / f"bank{end}.csv", sep=";", decimal=",")
    telephone = pd.read_csv(RAW / f"telephone{end}.csv", dtype={"client": str})
    telephone["customer"] = telephone.pop("client").str.strip().astype(int)
    return bank.merge(telephone, on="customer").merge(pd.read_csv(RAW / f"shop{end}.csv"), on="customer")


def year_and_month(frame: pd.DataFrame) -> pd.DataFrame:
    dates = pd.to_datetime(frame["opened"], format="%d.%m.%Y").dt
    return pd.DataFrame({"year": dates.year, "month": dates.month})


def pipeline(train: pd.DataFrame, l2: float) -> Pipeline:
    """Write the rules of the three files as scikit-learn has them."""

    def levels(column: str) -> OneHotEncoder:
        most_frequent = train[column].fillna("(missing)").value_counts().index[0]
        return OneHotEncoder(min_frequency=10, handle_unknown="infrequent_if_exist", drop=[most_frequent])

    columns = make_column_transformer(
        (SimpleImputer(strategy="median", add_indicator=True), ["age", "minutes"]),
        (make_pipeline(SimpleImputer(strategy="constant", fill_value="(missing)"), levels("job")), ["job"]),
        (levels("tariff"), ["tariff"]),
        (FunctionTransformer(year_and_month), ["opened"]),
        ("passthrough", ["income", "visits", "basket"]),
        sparse_threshold=0,
    )
    model = Ridge(alpha=len(train) * l2, solver="svd") if l2 else LinearRegression()
    return make_pipeline(columns, model).fit(train, train["spending"])


def halves(folder: Path) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Find who was learned from, and who was held out: the coreset has positions, the shop's file keys in order."""
    keys = pd.read_csv(folder / "shop-predictions.csv")["customer"]
    whole = merged().set_index("customer").loc[keys].reset_index()
    counts = np.isin(np.arange(len(whole)), cn.Run.load(folder / "plain").coreset.rows)
    return whole[counts], whole[~counts]


def check_objective(run: Path, pooled: Pipeline, train: pd.DataFrame, l2: float) -> None:
    squares = np.sum(np.square(pooled.predict(train) - train["spending"]))
    objective = squares + len(train) * l2 * np.sum(np.square(pooled[-1].coef_))
    assert cn.Run.load(run).diagnostics["cost"] == pytest.approx(objective, rel=1e-6)


def check_evaluation(report: Path, pooled: Pipeline, test: pd.DataFrame) -> None:
    told, predicted, label = json.loads(report.read_text()), pooled.predict(test), test["spending"]
    assert (told["n_evaluated"], told["table"]) == (len(test), "same")
    assert told["mse"] == pytest.approx(mean_squared_error(label, predicted), rel=1e-6)
    assert told["mae"] == pytest.approx(mean_absolute_error(label, predicted), rel=1e-6)
    assert told["r2"] == pytest.approx(r2_score(label, predicted), rel=1e-6)


def check_predictions(delivered: Path, pooled: Pipeline) -> None:
    got, new = pd.read_csv(delivered), merged("-new").set_index("customer")
    assert set(got["customer"]) == set(new.index)
    assert len(got) == len(new) == 101
    assert (new["job"] == "pilot").any()
    with pytest.warns(UserWarning, match="unknown categories in columns"):  # the bank is told so, too
        wanted = pooled.predict(new.loc[got["customer"]])
    assert np.allclose(got["prediction"], wanted, rtol=1e-6)


def check_levels(folder: Path, said: dict[str, str]) -> None:
    """Levels are named at their party, and nowhere else."""
    assert "job=nurse" in said["bank"]
    assert "job=(other)" in said["bank"]
    (part,) = (json.loads(path.read_text()) for path in (folder / "telephone-state").glob("part-*.json"))
    assert part["columns"] == ["tariff=family", "tariff=travel", "minutes", "minutes is missing"]
    elsewhere = [path for name in ("server-state", "plain", "ridge") for path in (folder / name).iterdir()]
    assert len(elsewhere) > 10
    for path in elsewhere:
        assert not set(LEVELS) & set(re.findall(r"\w+", path.read_bytes().decode("latin-1"))), path.name
    assert cn.Run.load(folder / "plain").model.feature_names_in_[2] == "job#1"


def check_exported_parts(raw: RawTables) -> None:
    """Each party exports its part out of its own state folder; applied to raw columns, parts add up to predictions."""
    delivered = pd.read_csv(raw.folder / "bank-new-predictions.csv")
    new = merged("-new").set_index("customer").loc[delivered["customer"]]
    new["opened"] = pd.to_datetime(new["opened"], format="%d.%m.%Y")
    total = cn.LinearModel.load(raw.folder / "ridge").intercept_ + np.zeros(len(new))
    for name in raw.names:
        (part,) = (raw.folder / f"{name}-state").glob("part-*.json")
        raw.command("export", str(part), "--party", name, "--out", str(raw.folder / f"{name}.onnx"))
        model = onnx.load(raw.folder / f"{name}.onnx")
        assert {each["party"] for each in told(model)["inputs"]} == {name}
        total = total + run_onnx(model, fed(model, {name: new}))["prediction"]
    assert np.allclose(total, delivered["prediction"], rtol=1e-6)
