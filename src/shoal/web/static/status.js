// The status page: takes looks from the socket `live`, beside this page, and shows them.
// Whatever a look says is put into the page as text, never as markup.

const byId = (id) => document.getElementById(id);
const RETRY_MS_MAX = 10_000;
const RATE_WINDOW_MS = 3_000;

const MEANINGS = {
  waiting: "for results of other tasks",
  queued: "ready; every thread is busy",
  "no-worker": "no connected worker may run it",
  processing: "given to a worker",
  memory: "the result is held",
  released: "done or not begun, and the result is not held",
  erred: "failed",
};

// --- numbers as people read them: at most three digits, and a unit ------------------------------

function count(n) {
  return n.toLocaleString("en-US");
}

function short(x) {
  return x >= 100 ? x.toFixed(0) : x >= 10 ? x.toFixed(1) : x.toFixed(2);
}

function bytes(n) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
  let unit = 0;
  while (n >= 1000 && unit < units.length - 1) {
    n /= 1024;
    unit += 1;
  }
  return `${unit ? short(n) : n} ${units[unit]}`;
}

function seconds(us) {
  if (us < 0) return "–";
  if (us < 1000) return `${us} µs`;
  if (us < 1e6) return `${short(us / 1e3)} ms`;
  return us < 120e6 ? `${short(us / 1e6)} s` : `${short(us / 60e6)} min`;
}

// --- pieces of the page -------------------------------------------------------------------------

function element(kind, className, text) {
  const made = document.createElement(kind);
  if (className) made.className = className;
  if (text !== undefined) made.textContent = text;
  return made;
}

function setText(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

function setShare(node, part, whole) {
  node.style.width = whole > 0 ? `${Math.min(100, (100 * part) / whole)}%` : "0";
}

function makeBar(...classNames) {
  const bar = element("div", "bar labelled");
  for (const name of classNames) bar.append(element("i", name));
  bar.append(element("span"));
  return bar;
}

function fillBar(bar, parts, whole, label) {
  parts.forEach((part, index) => setShare(bar.children[index], part, whole));
  setText(bar.lastElementChild, label);
}

// Rows keep their elements from one look to the next, so that nothing flickers.
function fitRows(body, n, makeRow) {
  while (body.rows.length > n) body.deleteRow(-1);
  while (body.rows.length < n) body.append(makeRow());
}

function cells(row, ...classNames) {
  for (const name of classNames) row.append(element("td", name));
  return row;
}

// --- what a look says ---------------------------------------------------------------------------

let history = []; // [at in ms, finished, received bytes], for rates

function remember(totals) {
  const now = performance.now();
  history.push([now, totals.finished, totals.received_bytes]);
  history = history.filter(([at]) => at > now - 2 * RATE_WINDOW_MS);
  showRates();
}

function showRates() {
  const now = performance.now();
  const before = history.findLast(([at]) => at <= now - RATE_WINDOW_MS) ?? history[0];
  const last = history.at(-1);
  if (!before || before === last) {
    setText(byId("rate"), history.length ? "0 per second" : "\u00a0");
    setText(byId("moved-rate"), history.length ? "0 B per second" : "\u00a0");
    return;
  }
  const elapsed = (now - before[0]) / 1000;
  setText(byId("rate"), `${short((last[1] - before[1]) / elapsed)} per second`);
  setText(byId("moved-rate"), `${bytes(Math.round((last[2] - before[2]) / elapsed))} per second`);
}

function showTotals(totals) {
  const workers = totals.workers === 1 ? "1 worker" : `${count(totals.workers)} workers`;
  setText(byId("busy"), `${count(totals.nbusy)} of ${count(totals.nthreads)}`);
  byId("busy").title = workers;
  setShare(byId("busy-bar"), totals.nbusy, totals.nthreads);
  setText(byId("finished"), count(totals.finished));
  const limit = totals.memory_limit;
  setText(byId("memory"), bytes(totals.memory_bytes) + (limit ? ` of ${bytes(limit)}` : ""));
  const whole = limit || totals.memory_bytes;
  const held = Math.max(0, totals.nbytes - totals.spilled_bytes);
  setShare(byId("memory-results"), held, whole);
  setShare(byId("memory-other"), Math.max(0, totals.memory_bytes - held), whole);
  setText(byId("moved"), bytes(totals.received_bytes));
}

function showStates(tasks) {
  const list = byId("states");
  for (const [state, n] of Object.entries(tasks)) {
    let entry = document.getElementById(`state-${state}`);
    if (!entry) {
      entry = element("div");
      entry.id = `state-${state}`;
      entry.title = MEANINGS[state] ?? "";
      entry.append(element("dt", "", state), element("dd"));
      list.append(entry);
    }
    setText(entry.lastElementChild, count(n));
    entry.classList.toggle("bad", n > 0 && (state === "erred" || state === "no-worker"));
  }
}

function showPrefixes(columns) {
  const body = byId("prefixes");
  const makeRow = () => {
    const row = cells(element("tr"), "name", "", "number", "number", "number");
    row.cells[1].append(makeBar("done", "running", "left", "erred"));
    return row;
  };
  fitRows(body, columns.name.length, makeRow);
  columns.name.forEach((name, i) => {
    const [nameCell, barCell, doneCell, failedCell, takesCell] = body.rows[i].cells;
    const { done, processing, left, erred, memory } = columns;
    const nknown = done[i] + processing[i] + left[i] + erred[i];
    const ndone = nknown ? done[i] : memory[i]; // of scattered values, nothing was computed
    const whole = Math.max(nknown, ndone, 1);
    setText(nameCell, name);
    nameCell.title = name;
    fillBar(barCell.firstChild, [ndone, processing[i], left[i], erred[i]], whole, "");
    setText(doneCell, `${count(ndone)} of ${count(whole)}`);
    setText(failedCell, erred[i] ? count(erred[i]) : "");
    failedCell.classList.toggle("bad", erred[i] > 0);
    setText(takesCell, seconds(columns.duration_us[i]));
  });
  byId("no-prefixes").hidden = columns.name.length > 0;
}

function showLocks(columns) {
  const body = byId("locks");
  fitRows(body, columns.name.length, () => cells(element("tr"), "name", "name", "number"));
  columns.name.forEach((name, i) => {
    const [nameCell, holderCell, waitCell] = body.rows[i].cells;
    setText(nameCell, name);
    nameCell.title = name;
    setText(holderCell, columns.holder[i]);
    holderCell.title = columns.holder[i];
    setText(waitCell, count(columns.nwaiting[i]));
  });
  byId("locks-section").hidden = columns.name.length === 0;
}

function showShuffles(columns) {
  const body = byId("shuffles");
  const numbers = Array(7).fill("number");
  fitRows(body, columns.name.length, () => cells(element("tr"), "name", ...numbers));
  columns.name.forEach((name, i) => {
    const again = columns.nagain[i];
    const said = [
      name,
      `${count(columns.nmade[i])} of ${count(columns.ninputs[i])}`,
      `${count(columns.njoined[i])} of ${count(columns.noutputs[i])}`,
      bytes(columns.in_bytes[i]),
      bytes(columns.disk_bytes[i]),
      bytes(columns.out_bytes[i]),
      bytes(columns.bytes_per_second[i]),
      columns.skew[i] ? `${short(columns.skew[i])} ×` : "–",
    ];
    said.forEach((text, j) => setText(body.rows[i].cells[j], text));
    body.rows[i].cells[0].title = again ? `${name}: shards were lost ${again} times` : name;
  });
  byId("shuffles-section").hidden = columns.name.length === 0;
}

function showWorkers(columns, total) {
  const body = byId("workers");
  const makeRow = () => {
    const row = cells(element("tr"), "name", "number", "runs", "number", "", "number");
    row.cells[4].append(makeBar("results", "other"));
    return row;
  };
  fitRows(body, columns.name.length, makeRow);
  columns.name.forEach((name, i) => {
    const [nameCell, threads, runs, given, memory, received] = body.rows[i].cells;
    const state = columns.leaving[i] ? " (leaving)" : columns.paused[i] ? " (paused)" : "";
    setText(nameCell, name + state);
    nameCell.title = columns.address[i];
    setText(threads, count(columns.nthreads[i]));
    const now = Object.entries(columns.runs[i]);
    setText(runs, now.map(([prefix, n]) => (n > 1 ? `${prefix} × ${n}` : prefix)).join(", "));
    runs.title = runs.textContent;
    setText(given, count(columns.nprocessing[i]));
    const used = columns.memory_bytes[i];
    const limit = columns.memory_limit[i];
    const spilled = columns.spilled_bytes[i];
    const held = Math.max(0, columns.nbytes[i] - spilled);
    const rest = Math.max(0, used - held);
    const label = bytes(used) + (limit ? ` of ${bytes(limit)}` : "");
    fillBar(memory.firstChild, [held, rest], limit || used, label);
    memory.title =
      `${bytes(held)} in results, ${bytes(spilled)} more on disk; ${bytes(rest)} is no result, ` +
      `${bytes(columns.unmanaged_old_bytes[i])} of that for long` +
      (columns.container_limit[i]
        ? `; all of its container: ${bytes(columns.container_bytes[i])} of ` +
          bytes(columns.container_limit[i])
        : "");
    setText(received, bytes(columns.received_bytes[i]));
  });
  const nmore = total - columns.name.length;
  const none = "No workers are connected: tasks wait until one joins.";
  setText(byId("more-workers"), total ? `and ${count(nmore)} more` : none);
  byId("more-workers").hidden = total > 0 && nmore === 0;
}

function show(look) {
  setText(byId("address"), look.about.address);
  setText(byId("version"), look.about.version);
  setText(byId("hint"), look.about.address);
  showTotals(look.totals);
  showStates(look.tasks);
  showPrefixes(look.prefixes);
  showLocks(look.locks);
  showShuffles(look.shuffles);
  showWorkers(look.workers, look.totals.workers);
  remember(look.totals);
  const { waiting, queued, processing } = look.tasks;
  const nopen = waiting + queued + processing + look.tasks["no-worker"];
  document.title = nopen ? `${count(nopen)} to do – shoal` : "shoal";
}

// --- the connection -----------------------------------------------------------------------------

let socket = null;
let retryMs = 500;
let retryTimer = null;

function say(words, className, notice) {
  setText(byId("connection"), words);
  byId("connection").className = `badge ${className}`;
  byId("notice").hidden = !notice;
  setText(byId("notice"), notice);
  document.body.classList.toggle("stale", className === "lost");
}

function connect() {
  clearTimeout(retryTimer);
  const url = new URL("live", location.href);
  url.protocol = url.protocol === "https:" ? "wss:" : "ws:";
  const opened = new WebSocket(url);
  socket = opened;
  opened.onmessage = (event) => {
    retryMs = 500;
    say("live", "live", "");
    show(JSON.parse(event.data));
  };
  opened.onclose = () => {
    if (socket !== opened) return;
    socket = null;
    if (document.hidden) return;
    const notice = "The scheduler has closed or is out of reach; what you see is how it was last.";
    say("not connected", "lost", notice);
    history = [];
    retryTimer = setTimeout(connect, retryMs);
    retryMs = Math.min(2 * retryMs, RETRY_MS_MAX);
  };
}

// Nobody sees a hidden page, and then the scheduler need not look either.
document.addEventListener("visibilitychange", () => {
  if (document.hidden) {
    clearTimeout(retryTimer);
    const opened = socket;
    socket = null;
    opened?.close();
    say("asleep", "", "");
  } else if (socket === null) {
    connect();
  }
});

setInterval(showRates, 1000);
if (!document.hidden) connect();
