"use strict";
// Everything that is shown comes from elsewhere: it becomes text by textContent, never markup.
// What says who asks is kept for this tab, address and port only, and goes with each request by name: no cookie has it.
const session = sessionStorage.getItem("session");
const sections = document.getElementById("sections");
const asking = document.getElementById("ask");
const spoken = new Map(); // how each run was when it was last said
let fading = 0;

function make(tag, facts = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(facts)) {
    if (value === null || value === undefined || value === false) continue;
    if (name === "text") node.textContent = value;
    else if (name === "press") node.addEventListener("click", value);
    else if (name === "class") node.className = value;
    else node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.filter((child) => child !== null && child !== undefined));
  return node;
}

const text = (tag, words, kind) => make(tag, { text: words, class: kind });

// --- times

function ago(moment) {
  const seconds = Math.max(0, (Date.now() - Date.parse(moment)) / 1000);
  if (Number.isNaN(seconds)) return "";
  if (seconds < 5) return "just now";
  if (seconds < 60) return `${Math.round(seconds)} s ago`;
  if (seconds < 3600) return `${Math.round(seconds / 60)} min ago`;
  if (seconds < 172800) return `${(seconds / 3600).toFixed(1)} h ago`;
  return `${Math.round(seconds / 86400)} days ago`;
}

function until(moment) {
  const seconds = (Date.parse(moment) - Date.now()) / 1000;
  if (Number.isNaN(seconds)) return "";
  if (seconds <= 0) return "its time is over";
  if (seconds < 3600) return `refused in ${Math.ceil(seconds / 60)} min`;
  return `refused in ${(seconds / 3600).toFixed(1)} h`;
}

function moment(value, kind = "ago") {
  if (!value) return null;
  const node = make("time", { datetime: value, title: value, "data-kind": kind });
  node.textContent = kind === "ago" ? ago(value) : until(value);
  return node;
}

setInterval(() => {
  for (const node of document.querySelectorAll("time[data-kind]")) {
    const words = node.dataset.kind === "ago" ? ago(node.dateTime) : until(node.dateTime);
    if (node.textContent !== words) node.textContent = words;
  }
}, 5000);

// --- asking and doing

function leave() {
  sessionStorage.removeItem("session");
  location.replace("/login");
}

async function call(path, options = {}) {
  const answer = await fetch(path, { ...options, headers: { authorization: `Bearer ${session}` } });
  if (answer.status === 401) leave();
  return answer;
}

async function post(path, body = {}) {
  const answer = await call(path, { method: "POST", body: JSON.stringify(body) });
  return { ok: answer.ok, ...await answer.json() };
}

async function tried(path, body) {
  try {
    return await post(path, body);
  } catch {
    return { ok: false, words: "The board does not answer. Is it still running?" };
  }
}

async function act(name, body) {
  say(await tried(`/do/${name}`, body));
}

async function openReport(run) {
  // A new tab sends no header: it has a ticket, which is good once.
  const found = await tried("/ticket");
  if (found.ok) window.open(`/runs/${encodeURIComponent(run)}/report?ticket=${found.ticket}`, "_blank", "noopener");
  else say(found);
}

function say(found) {
  const line = document.getElementById("said");
  line.textContent = found.words;
  line.dataset.tone = found.ok ? "good" : "bad";
  clearTimeout(fading);
  fading = setTimeout(() => { line.textContent = ""; }, found.ok ? 15000 : 60000);
}

function ask({ title, words, yes, no, reason = false }) {
  document.getElementById("ask-title").textContent = title;
  document.getElementById("ask-words").textContent = words;
  document.getElementById("ask-yes").textContent = yes;
  document.getElementById("ask-no").textContent = no;
  document.getElementById("ask-reason").hidden = !reason;
  document.getElementById("reason").value = "";
  asking.returnValue = "no";
  asking.showModal();
  return new Promise((resolve) => {
    asking.addEventListener(
      "close",
      () => resolve({ yes: asking.returnValue === "yes", reason: document.getElementById("reason").value }),
      { once: true },
    );
  });
}

// Enter in the reason's field submits by the first button, which is the one that changes nothing.
document.getElementById("ask-no").addEventListener("click", () => asking.close("no"));

function button(words, key, press, kind = "") {
  return make("button", { type: "button", text: words, press, class: kind, "data-key": key });
}

// --- pieces

function badge(words, tone) {
  return make("span", { class: "badge", "data-tone": tone, text: words });
}

function row(name, value) {
  if (!value) return null;
  return make("div", { class: "fact" }, text("dt", name), make("dd", {}, value));
}

function facts(...rows) {
  const kept = rows.filter(Boolean);
  return kept.length ? make("dl", { class: "facts" }, ...kept) : null;
}

function more(summary, key, ...children) {
  return make("details", { "data-key": key }, text("summary", summary), ...children);
}

const tones = {
  running: "busy", done: "good", failed: "bad", cancelled: "away", interrupted: "late", waiting: "waiting",
  yes: "good", no: "bad",
};

function party(each) {
  return make("article", { class: "card" },
    make("div", { class: "top" }, text("h3", each.name), badge(each.state, each.tone)),
    facts(row("last seen", each.seen ? moment(each.seen) : each.is_here ? null : "not yet"), row("policy", each.policy)),
  );
}

function bytes(run) {
  if (!run.bytes.length) return null;
  const head = make("tr", {}, ...["party", "sent to it", "received"].map((words) => make("th", { scope: "col", text: words })));
  const lines = run.bytes.map((each) => make("tr", {},
    make("th", { scope: "row", text: each.party }), text("td", each.sent), text("td", each.received)));
  return more(`${run.total}${run.can_cancel ? " so far" : ""}, by party`, `bytes-${run.run}`,
    make("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": `Bytes of ${run.run} by party` },
      make("table", {}, make("thead", {}, head), make("tbody", {}, ...lines))));
}

function serverRun(run) {
  const number = run.rounds ? `round ${run.round} of ${run.rounds}` : run.round ? `round ${run.round}` : "";
  const way = [run.phase, number].filter(Boolean).join(", ");
  const bar = run.status === "running" && run.progress !== null
    ? make("progress", { max: "1", value: String(run.progress), "aria-label": `Progress of ${run.run}` }) : null;
  const buttons = make("div", { class: "buttons" });
  if (run.has_report) {
    const opens = button("Open report", `report-${run.run}`, () => openReport(run.run));
    opens.setAttribute("aria-label", `Open report of ${run.run}`);
    buttons.append(opens);
  }
  if (run.is_cancelling) buttons.append(text("span", "being cancelled …", "note"));
  else if (run.can_cancel) buttons.append(button("Cancel run", `cancel-${run.run}`, () => cancel(run), "quiet"));
  return make("article", { class: "card", id: `run-${run.run}` },
    make("div", { class: "top" }, text("h3", run.title), badge(run.status, tones[run.status] || "unknown")),
    text("p", [run.run, run.how].filter(Boolean).join(" · "), "note"),
    run.error ? text("p", run.error, "problem") : null,
    bar,
    facts(
      row(run.status === "running" ? "now" : run.status === "done" ? "rounds" : "got to", run.status === "done" ? String(run.round) : way),
      row("time left", run.left),
      row("started", moment(run.started)),
      row("ended", run.ended ? moment(run.ended) : null),
      row("took", run.took),
    ),
    bytes(run),
    buttons.childNodes.length ? buttons : null,
  );
}

async function cancel(run) {
  const found = await ask({
    title: `Cancel ${run.run}?`,
    words: "It ends as failed for all sides, and each party is told that whoever runs the server cancelled it.",
    yes: "Cancel the run", no: "Keep it running",
  });
  if (found.yes) await act("cancel", { run: run.run });
}

function queued(job) {
  return make("article", { class: "card" },
    make("div", { class: "top" }, text("h3", job.title), badge(job.is_begun ? "under way" : "waits", job.is_begun ? "busy" : "waiting")),
    text("p", [job.how, job.out && `to ${job.out}`].filter(Boolean).join(" · "), "note"),
    facts(row("asked for", moment(job.asked))),
    job.is_begun ? null : make("div", { class: "buttons" },
      button("Take off the queue", `unqueue-${job.name}`, () => act("unqueue", { job: job.name }), "quiet")),
  );
}

function finishedJob(job) {
  return make("article", { class: "card" },
    make("div", { class: "top" }, text("h3", job.title), badge(job.status, tones[job.status])),
    text("p", [job.how, job.out && `to ${job.out}`].filter(Boolean).join(" · "), "note"),
    job.error ? text("p", job.error, "problem") : null,
    facts(row("ended", moment(job.ended))),
  );
}

function saved(job, body, words, key) {
  return make("article", { class: "card" },
    make("div", { class: "top" }, text("h3", job.title)),
    text("p", words, "note"),
    make("div", { class: "buttons" }, button("Start", key, () => act("start", body), "main")),
  );
}

function savedJob(job) {
  const words = [`job ${job.number}`, job.how, job.out && `to ${job.out}`, job.replaces && "which it replaces"];
  return saved(job, { job: job.key }, words.filter(Boolean).join(" · "), `start-${job.key}`);
}

const savedPlan = (plan) => saved(plan, { plan: plan.name }, `${plan.name} · ${plan.how} · ${plan.about}`, `plan-${plan.name}`);

function pending(job) {
  const list = make("ul", { class: "tells" }, ...job.tells.map((words) => text("li", words)));
  const sign = job.decided ? badge(`decided: ${job.decided}`, tones[job.decided] || "unknown") : badge("waits for you", "waiting");
  return make("article", { class: "card wide" },
    make("div", { class: "top" }, text("h3", job.title), sign),
    text("p", [job.run, `asked by ${job.server}`].join(" · "), "note"),
    facts(row("job", job.facts), row("asked", moment(job.since)), job.decided ? null : row("time left", moment(job.until, "until"))),
    text("h4", "You would tell"),
    job.tells.length ? list : text("p", "nothing of your data"),
    facts(row("today", job.today), ...job.in_all.map((words) => row("for all time", words))),
    job.decided ? null : make("div", { class: "buttons" },
      button("Approve", `yes-${job.run}`, () => approve(job), "main"),
      button("Refuse", `no-${job.run}`, () => refuse(job), "quiet")),
  );
}

async function approve(job) {
  const found = await ask({ title: `Approve ${job.run}?`, words: `${job.facts}. The party then takes part in this run, within its policy.`,
    yes: "Approve", no: "Not yet" });
  if (found.yes) await act("decide", { run: job.run, digest: job.digest, approve: true });
}

async function refuse(job) {
  const found = await ask({ title: `Refuse ${job.run}?`, words: "The run ends for all sides. Write nothing that others may not read.",
    yes: "Refuse the run", no: "Not yet", reason: true });
  if (found.yes) await act("decide", { run: job.run, digest: job.digest, approve: false, reason: found.reason });
}

function partyRun(run) {
  return make("article", { class: "card" },
    make("div", { class: "top" }, text("h3", run.title), badge(run.status, tones[run.status] || "unknown")),
    text("p", [run.run, run.how].filter(Boolean).join(" · "), "note"),
    run.reason ? text("p", run.reason, run.status === "done" ? "note" : "problem") : null,
    facts(row("asked", run.asked), row("answered", run.answered), row("told", run.told), row("refused", run.refused),
      row("began", moment(run.began)), row("ended", run.ended ? moment(run.ended) : null)),
  );
}

const refusal = (each) => make("article", { class: "card" },
  make("div", { class: "top" }, text("h3", each.request || "a request"), moment(each.time)),
  text("p", each.run, "note"), text("p", each.reason, "problem"));

function budget(each) {
  return make("article", { class: "card" },
    make("div", { class: "top" }, text("h3", each.name), text("span", each.words, "amount")),
    each.share === null ? null : make("meter", { min: "0", max: "1", low: "0.2", optimum: "1", value: String(each.share), "aria-label": `${each.name} left` }));
}

const statement = (each) => make("article", { class: "card" }, text("h3", each.about), text("p", each.words));
const asked = (each) => make("article", { class: "card" }, make("div", { class: "top" }, text("h3", each.party), badge("waits for its owner", "waiting")),
  text("p", "Its owner decides at the party: `colonnade approve`, or the party's own board.", "note"));

// --- the page

const plans = {
  server: [
    ["approvals", "Waiting for an owner", "approvals", asked, null],
    ["parties", "Parties", "parties", party, "The file names no party."],
    ["runs", "Runs", "runs", serverRun, "No run yet."],
    ["queue", "Queue", "queue", queued, "Nothing waits."],
    ["jobs", "Start a saved job", "jobs", savedJob, "federation.toml has no [[job]]."],
    ["plans", "Start a saved plan", "plans", savedPlan, null],
    ["finished", "Jobs that failed", "finished", finishedJob, null],
  ],
  party: [
    ["pending", "Waiting for you", "pending", pending, "No job waits for you."],
    ["budget", "Left today (UTC)", "budget", budget, "No limit a day."],
    ["alltime", "For all time", "all_time", statement, null],
    ["runs", "What was asked and answered", "runs", partyRun, "Nothing was asked yet."],
    ["refusals", "What was refused", "refusals", refusal, "Nothing was refused."],
    ["policy", "Policy: what a server could learn at worst", "policy", statement, null],
  ],
};
const shown = new Map();

function section(key, title) {
  if (!shown.has(key)) {
    const list = make("div", { class: "cards" });
    const note = text("p", "", "note");
    const node = make("section", { id: key, "aria-labelledby": `${key}-title` }, make("h2", { id: `${key}-title`, text: title }), note, list);
    sections.append(node);
    shown.set(key, { node, list, note, cards: new Map() });
  }
  return shown.get(key);
}

const identity = (each) => each.run || each.key || each.name || each.party || each.about || each.time + each.run;

function fill(key, title, items, draw, empty, note) {
  const place = section(key, title);
  place.node.hidden = !items.length && empty === null;
  place.note.textContent = note || (items.length ? "" : empty || "");
  place.note.hidden = !place.note.textContent;
  const open = new Set([...place.list.querySelectorAll("details[open]")].map((node) => node.dataset.key));
  const focused = document.activeElement && place.list.contains(document.activeElement) ? document.activeElement.dataset.key : null;
  const cards = new Map();
  let last = null;
  items.forEach((each, index) => {
    const name = `${identity(each)}#${cards.has(identity(each)) ? index : ""}`;
    const was = place.cards.get(name);
    const as = JSON.stringify(each);
    const node = was && was.as === as ? was.node : draw(each);
    cards.set(name, { as, node });
    if (last ? last.nextSibling !== node : place.list.firstChild !== node) {
      if (last) last.after(node);
      else place.list.prepend(node);
    }
    last = node;
  });
  while (last ? last.nextSibling : place.list.firstChild) (last ? last.nextSibling : place.list.firstChild).remove();
  place.cards = cards;
  for (const node of place.list.querySelectorAll("details")) if (open.has(node.dataset.key)) node.open = true;
  if (focused && document.activeElement === document.body) {
    const again = [...place.list.querySelectorAll("[data-key]")].find((node) => node.dataset.key === focused);
    if (again) (again.tagName === "DETAILS" ? again.firstChild : again).focus();
  }
}

function speak(now) {
  // What became of a run is said once, for those who do not see it.
  for (const run of now.runs) {
    const before = spoken.get(run.run);
    if (before && before !== run.status) document.getElementById("spoken").textContent = `${run.title}: ${run.status}`;
    spoken.set(run.run, run.status);
  }
}

function draw(now) {
  const headline = document.getElementById("headline");
  if (now.kind === "problem") {
    headline.textContent = now.words;
    headline.dataset.tone = "bad";
    return;
  }
  document.getElementById("name").textContent = now.name;
  document.title = `${now.name} · Colonnade board`;
  if (headline.textContent !== now.headline.words) headline.textContent = now.headline.words;
  headline.dataset.tone = now.headline.tone;
  for (const [key, title, name, drawing, empty] of plans[now.kind]) {
    fill(key, title, now[name] || [], drawing, empty, now[`${name}_note`]);
  }
  if (now.kind === "server") {
    fill("words", "What the server said last", now.said ? [{ name: "said", words: now.said }] : [],
      (each) => make("article", { class: "card wide" }, make("pre", { text: each.words, tabindex: "0", role: "region", "aria-label": "What the server said last" })), null, "");
  }
  speak(now);
}

function live(words, tone) {
  const node = document.getElementById("live");
  node.textContent = words;
  node.dataset.tone = tone;
}

async function listen() {
  let ticket;
  try {
    const found = await post("/ticket"); // refused, it leaves
    if (!found.ok) return;
    ticket = found.ticket;
  } catch { // it is not there
    live("not connected to the board", "bad");
    setTimeout(listen, 5000);
    return;
  }
  const source = new EventSource(`/events?ticket=${ticket}`);
  source.onopen = () => live("live", "good");
  source.onmessage = (event) => {
    live("live", "good");
    draw(JSON.parse(event.data));
  };
  source.onerror = async () => {
    live("not connected to the board", "bad");
    source.close(); // by itself it would come again with the same ticket
    try {
      const answer = await call("/state");
      if (answer.ok) draw(await answer.json());
    } catch { /* it is not there: try again below */ }
    setTimeout(listen, 5000);
  };
}

document.getElementById("logout").addEventListener("click", async () => {
  await tried("/logout");
  leave();
});
if (session) listen();
else leave();
