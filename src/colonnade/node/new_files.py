"""party.toml, federation.toml and job.toml to start from: what was guessed of a table, with a remark on each line."""

from collections.abc import Sequence
from pathlib import PurePath

from colonnade.data.checking.columns import ColumnSeen
from colonnade.data.checking.starting import Role, Start
from colonnade.node.toml_text import toml_line

CERTIFICATES = "certs"
ADDRESS = "127.0.0.1:7143"
# Remarks stand in one column, but for lines longer than this.
WIDEST = 60
# A table of so many rows is small enough to learn from all of them.
FEW_ROWS = 2_000
Line = tuple[str, str]


def new_party_file(start: Start, path: PurePath, server: str = ADDRESS) -> str:
    """Write the party.toml of a table, to stand at a path."""
    head = [
        f"# What {_in_remark(start.name)} reads:  colonnade party {_in_remark(path.name)}",
        "# Every guess has a remark: read it, and correct it. What follows a # is a remark, or not in use.",
        f"# Then:  colonnade check {_in_remark(path.name)}",
        f"#        colonnade policy explain {_in_remark(path.name)}",
    ]
    name = start.name
    top = [
        (toml_line("name", name), "as in its certificate and in federation.toml"),
        (toml_line("server", server), "where the server listens"),
        (toml_line("state", f"{name}-state"), "journals of unfinished runs, log of what was asked"),
        (toml_line("predictions", f"{name}-predictions.csv"), "where predictions go that are delivered to it"),
        (toml_line("revoked", f"{CERTIFICATES}/revoked.toml"), "what no longer counts, read again while it runs"),
    ]
    policy = [
        ("[policy]", "what the owner answers: `colonnade policy new` has every rule"),
        ('level = "usual"', "or strict, open"),
    ]
    blocks = [top, _data("[data]", start), _prepare("prepare.columns", start), *_secrets(name), policy]
    return _file(head, blocks)


def new_federation_file(parties: Sequence[str], path: PurePath, server: str = "server") -> str:
    """Write the federation.toml of parties, to stand at a path."""
    head = [
        f"# What the server reads:  colonnade server {_in_remark(path.name)}",
        f"# Certificates and identities for a trial:  {_certificates(parties)}",
    ]
    top = [
        (toml_line("parties", list(parties)), "in the order of the model's columns"),
        (toml_line("listen", ADDRESS), '"0.0.0.0:7143" to be reached from other machines'),
        (toml_line("state", "server-state"), "journals of unfinished runs, status, log"),
        (toml_line("revoked", f"{CERTIFICATES}/revoked.toml"), "certificates that no longer count"),
        (f"# {toml_line('run_by', parties[0])}", "if a party runs the server; then mode is curve below"),
    ]
    align = [
        ("[align]", "how the parties' records are matched by key"),
        ('mode = "aided"', "or curve, clear; exact: all have the same rows in the same order"),
    ]
    jobs = [
        ("# [[job]]", "what the server does, one after another; take away the # of what you want"),
        ('# do = "fit"', ""),
        ('# out = "run"', "a new folder"),
        ("# seed = 0", ""),
        (
            '# task = { kind = "regression" }',
            'or "classification"; or { kind = "kmeans", n_clusters = 5 }, without label',
        ),
        ('# sampler = { kind = "importance", size = 2_000 }', "rows to learn from"),
        ('# split = { kind = "fraction", fraction = 0.2 }', "rows to hold out"),
        ("#", ""),
        ("# [[job]]", ""),
        ('# do = "evaluate"', "on the rows held out"),
        ('# model = "run"', ""),
        ('# out = "evaluation.json"', ""),
        ("#", ""),
        ("# [[job]]", ""),
        ('# do = "predict"', ""),
        ('# model = "run"', ""),
        (f"# {toml_line('to', parties[0])}", "the party that gets the predictions"),
    ]
    return _file(head, [top, align, *_secrets(server, identity="server"), jobs])


def new_job_file(starts: Sequence[Start], path: PurePath) -> str:
    """Write a job.toml for parties whose tables are all here, to stand at a path."""
    named = _in_remark(path.name)
    head = [
        f"# Learn from the tables of {len(starts)} parties, all here:  colonnade fit {named}",
        "# Every guess has a remark: read it, and correct it. What follows a # is a remark, or not in use.",
    ]
    mode = "aided" if len(starts) > 1 and all(start.key.columns for start in starts) else "exact"
    how = "rows are matched by key; or curve, clear, exact" if mode == "aided" else "the same rows, in the same order"
    top = [("seed = 0", "the same seed gives the same bits"), (toml_line("align", mode), how)]
    labelled = any(start.label.columns for start in starts)
    task = [
        ("[task]", "what to learn"),
        _kind(starts),
        ("# l2 = 0.1", 'ridge penalty a row, or "cv" to have it chosen'),
    ]
    if not labelled:
        task[0] = ("[task]", "what to learn: name the label of one party below first")
    rows = min(start.n_rows for start in starts)
    sampler = [
        ("[sampler]", f"which rows to learn from, of {rows:,}"),
        ('kind = "all"', 'or "importance", with a size'),
        (f"# size = {min(FEW_ROWS, max(rows // 4, 1)):_}", 'how many rows; not with "all"'),
    ]
    if rows > FEW_ROWS:
        sampler[1:] = [
            ('kind = "importance"', 'or "uniform", or "all", without a size'),
            (f"size = {FEW_ROWS:_}", "how many rows"),
        ]
    solver = [("[solver]", "how the model is learned"), ('kind = "central"', "or gram, which shows no rows; or saga")]
    split = [
        ("# [split]", "which rows are held out, for `colonnade evaluate`"),
        ('# kind = "fraction"', ""),
        ("# fraction = 0.2", ""),
    ]
    parties = []
    for start in starts:
        has_label = not labelled or bool(start.label.columns)  # one party has one
        parties += [
            _data("[[party]]", start, label=has_label, name=start.name),
            _prepare("party.prepare.columns", start),
        ]
    return _file(head, [top, task, sampler, solver, split, *parties])


def _kind(starts: Sequence[Start]) -> Line:
    """Guess the task by the label: one of text, or of two values, has classes."""
    labels = [start.seen[start.label.columns[0]] for start in starts if start.label.columns]
    if labels and (labels[0].kind in ("text", "yes/no") or labels[0].distinct == 2):
        return 'kind = "classification"', "guessed by the label; or regression, of numbers; or kmeans"
    return 'kind = "regression"', "or classification; or kmeans, with n_clusters = 5, which needs no label"


def _data(header: str, start: Start, *, label: bool = True, **more: str) -> list[Line]:
    return [
        (header, f"{start.n_rows:,} rows, {len(start.seen):,} columns"),
        *((toml_line(name, value), "") for name, value in more.items()),
        (toml_line("file", start.file), "from the folder of this file"),
        _role("key", start.key),
        *([_role("label", start.label)] if label else []),
    ]


def _role(name: str, role: Role) -> Line:
    columns = role.columns[0] if len(role.columns) == 1 else list(role.columns)
    if columns:
        return toml_line(name, columns), role.remark
    return f"# {toml_line(name, role.suggestion or '...')}", role.remark


def _prepare(header: str, start: Start) -> list[Line]:
    """List the rules of columns, and, not in use, the columns that are left out."""
    lines = [
        (toml_line(name, rule), start.seen[name].in_counts(levels=rule["kind"] == "category"))
        for name, rule in start.rules.items()
    ]
    others = [(f"# {toml_line(name, _as_it_is(start.seen[name]))}", _why(start, name)) for name in start.left_out]
    head = f"[{header}]" if lines else f"# [{header}]"
    return [(head, "what is made of each column; no other is read"), *lines, *others]


def _why(start: Start, name: str) -> str:
    odd = "; it reads as numbers" if start.seen[name].reads_as_numbers else ""
    return f"{start.left_out[name]}{odd}"


def _as_it_is(column: ColumnSeen) -> dict[str, str]:
    return {"kind": {"number": "number", "yes/no": "number", "date": "date"}.get(column.kind, "category")}


def _secrets(name: str, identity: str | None = None) -> list[list[Line]]:
    """Name the files that `colonnade certs new certs` makes."""
    folder = CERTIFICATES
    tls = [
        ("[tls]", f"`colonnade certs new {folder} --party ...` makes these files for a trial"),
        (toml_line("authority", f"{folder}/ca.pem"), ""),
        (toml_line("certificate", f"{folder}/{name}.pem"), ""),
        (toml_line("key", f"{folder}/{name}.key"), ""),
    ]
    own = [
        ("[identity]", "what it signs with, and everybody's pins"),
        (toml_line("key", f"{folder}/{identity or name}.identity"), ""),
        (toml_line("pins", f"{folder}/pins.toml"), ""),
    ]
    return [tls, own]


def _certificates(parties: Sequence[str]) -> str:
    options = " ".join(f"--party {_in_remark(party)}" for party in parties)
    return f"colonnade certs new {CERTIFICATES} {options}"


def _in_remark(text: str) -> str:
    """Write text into a remark, where a new line would end it."""
    return "".join(each if each.isprintable() else "\ufffd" for each in text)


def _file(head: Sequence[str], blocks: Sequence[Sequence[Line]]) -> str:
    parts = ["\n".join(head), *map(_block, blocks)]
    return "\n\n".join(parts) + "\n"


def _block(lines: Sequence[Line]) -> str:
    width = max((len(code) for code, remark in lines if remark and len(code) <= WIDEST), default=0)
    return "\n".join(f"{code.ljust(width)}  # {_in_remark(remark)}" if remark else code for code, remark in lines)
