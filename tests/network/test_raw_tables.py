"""From raw CSV files to predictions by key, by the command alone: equal to pandas.merge and a scikit-learn pipeline."""

import json
import re
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import TypeAlias

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.metrics import mean_absolute_error, r2_score
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder

import colonnade as cn
import command
from network_trial import Trial, free_port

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


Way: TypeAlias = tuple[RawTables, dict[str, str], dict[str, str]]


@pytest.fixture(scope="module")
def town(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Way]:
    """Go the whole way once; give what was said when it learned, and of new rows."""
    with RawTables(tmp_path_factory.mktemp("raw")) as raw:
        raw.new_party("bank")
        raw.new_party("telephone", "--key", "client")
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
        yield raw, learned, raw.together(("align", str(federation), "--again"), ("server", str(federation)))


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


def halves(raw: RawTables) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Find who was learned from, and who was held out: the coreset has positions, the shop's file keys in order."""
    keys = pd.read_csv(raw.folder / "shop-predictions.csv")["customer"]
    whole = merged().set_index("customer").loc[keys].reset_index()
    counts = np.isin(np.arange(len(whole)), cn.Run.load(raw.folder / "plain").coreset.rows)
    return whole[counts], whole[~counts]


@pytest.mark.parametrize(("name", "l2"), [("plain", 0.0), ("ridge", L2)])
def test_the_objective_and_the_evaluation_are_those_of_the_pooled_table(town: Way, name: str, l2: float) -> None:
    raw, _, _ = town
    train, test = halves(raw)
    assert (len(train), len(test)) == (1015, 254)
    pooled = pipeline(train, l2)
    squares = np.sum(np.square(pooled.predict(train) - train["spending"]))
    objective = squares + len(train) * l2 * np.sum(np.square(pooled[-1].coef_))
    found = cn.Run.load(raw.folder / name).diagnostics["cost"]
    assert found == pytest.approx(objective, rel=1e-6)
    told = json.loads((raw.folder / f"{name}.json").read_text())
    predicted, label = pooled.predict(test), test["spending"]
    wanted = {
        "n_evaluated": len(test),
        "mse": np.mean(np.square(predicted - label)),
        "mae": mean_absolute_error(label, predicted),
        "r2": r2_score(label, predicted),
    }
    for measure, value in wanted.items():
        assert told[measure] == pytest.approx(value, rel=1e-6)
    assert told["table"] == "same"


@pytest.mark.parametrize(("name", "l2", "party"), [("plain", 0.0, "shop"), ("ridge", L2, "bank")])
def test_a_party_gets_predictions_of_new_rows_by_key(town: Way, name: str, l2: float, party: str) -> None:
    raw, _, said = town
    got = pd.read_csv(raw.folder / f"{party}-new-predictions.csv")
    new = merged("-new").set_index("customer")
    assert set(got["customer"]) == set(new.index)
    assert len(got) == len(new) == 101
    with pytest.warns(UserWarning, match="unknown categories in columns"):  # which are said here, too
        wanted = pipeline(halves(raw)[0], l2).predict(new.loc[got["customer"]])
    print(
        f"\n{name}: {len(got)} predictions at the {party}, off by {np.max(np.abs(got['prediction'] / wanted - 1)):.1e}"
    )
    assert np.allclose(got["prediction"], wanted, rtol=1e-6)
    assert (new["job"] == "pilot").any()
    assert re.search(r"job: \d rows have levels that were not there", said["bank"])


def test_levels_are_named_at_their_party_and_nowhere_else(town: Way) -> None:
    raw, learned, _ = town
    assert "job=nurse" in learned["bank"]
    assert "job=(other)" in learned["bank"]
    (part,) = (json.loads(path.read_text()) for path in (raw.folder / "telephone-state").glob("part-*.json"))
    assert part["columns"] == ["tariff=family", "tariff=travel", "minutes", "minutes is missing"]
    elsewhere = [path for folder in ("server-state", "plain", "ridge") for path in (raw.folder / folder).iterdir()]
    assert len(elsewhere) > 10
    for path in elsewhere:
        assert not set(LEVELS) & set(re.findall(r"\w+", path.read_bytes().decode("latin-1"))), path.name
    assert cn.Run.load(raw.folder / "plain").model.feature_names_in_[2] == "job#1"
