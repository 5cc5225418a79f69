"use strict";

// ---- the answer: the costs of the chosen case are added up, ranked and put into words

const data = JSON.parse(document.getElementById("data").textContent);

const significant = (value) => Number(value.toPrecision(3)).toLocaleString("en", { maximumSignificantDigits: 3 }).replaceAll(",", "\u202f");

function time(ns) {
  const [factor, unit] = [[1e9, "s"], [1e6, "ms"], [1e3, "µs"], [1, "ns"]].find(([factor]) => ns >= 0.9995 * factor) ?? [1, "ns"];
  return `${significant(ns / factor)}\u00a0${unit}`;
}

const times = (ratio) => `${ratio < 10 ? ratio.toFixed(2) : significant(ratio)}\u00a0times`;
const percent = (share) => `${significant(100 * share)}\u00a0%`;
const listed = (words) => words.length > 1 ? `${words.slice(0, -1).join(", ")} and ${words.at(-1)}` : words.join("");
const grouped = (number) => number.toLocaleString("en").replaceAll(",", "\u202f");

function element(tag, text = "", attributes = {}) {
  const made = document.createElement(tag);
  made.append(...[text].flat());
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  return made;
}

const duration = (ms) => ms < 1000 ? `${significant(ms)}\u00a0ms` : ms < 60000 ? `${significant(ms / 1000)}\u00a0s` : `${significant(ms / 60000)}\u00a0min`;
const bytes = (number) => { const [factor, unit] = [[1e9, "GB"], [1e6, "MB"], [1e3, "kB"], [1, "B"]].find(([factor]) => number >= factor) ?? [1, "B"]; return `${significant(number / factor)}\u00a0${unit}`; };
const CORE = 1e9;  // ns in a second

// The model of compare/trial/advice/cost.py: what a caller pays in a second.

const sizesOf = (costs) => Object.keys(costs).map(Number).sort((a, b) => a - b);

/** The traffic in a few numbers: what follows from the controls. */
function settingOf(form) {
  if (form.setting) return form.setting;
  const [rate, timeout, share] = [Number(form.rate), Number(form.timeout), Number(form.share)];
  const answer = Number(form.answer) * timeout;
  const pending = rate * (share * answer + (1 - share) * timeout) / 1000;
  // A clock of its own moves only where a timer fires; one that is moved, also where one starts or is cancelled.
  const events = data.callers[form.caller].own_clock ? rate * (1 - share) : 2 * rate;
  return { rate, share, pending, steps: data.steps * -Math.expm1(-events / data.steps) };
}

/** [pair, fire, step] with this number of pending timers; `which` is 0, 1 or 2: median, low, high. */
function at(pending, costs, which) {
  const sizes = sizesOf(costs);
  const above = Math.max(sizes.findIndex((size, i) => i > 0 && (size >= pending || i === sizes.length - 1)), 1);
  const [left, right] = [sizes[above - 1], sizes[above]];
  const share = Math.log(Math.min(Math.max(pending, 1), right) / left) / Math.log(right / left);
  return [0, 1, 2].map((part) => {
    const [low, high] = [costs[left][part][which], costs[right][part][which]];
    const exponent = part === 2 ? share : Math.max(share, 0);  // below the smallest size only a step gets shorter
    return low > 0 && high > 0 ? low * (high / low) ** exponent : Math.max(low, high);
  });
}

/** [median, low, high] of the nanoseconds of CPU in a second. */
function costOf(setting, costs) {
  return [0, 1, 2].map((which) => {
    const [pair, fire, step] = at(setting.pending, costs, which);
    return setting.rate * (setting.share * pair + (1 - setting.share) * fire) + setting.steps * step;
  });
}

/** Bytes of a timer with this capacity: a fixed part, and as much for each timer. */
function memoryOf(timer, capacity) {
  const sizes = sizesOf(timer.memory);
  if (!sizes.length) return null;
  const [first, last] = [sizes[0], sizes.at(-1)];
  const [small, large] = [first * timer.memory[first], last * timer.memory[last]];
  return first === last ? capacity * timer.memory[first] : small + (large - small) * (capacity - first) / (last - first);
}

/** Whether a timer fires within what another one allows. */
function precise(timer, limit) {
  const comparable = timer.unit === limit.unit || (timer.low === 0 && timer.high === 0);
  return comparable && timer.low >= limit.low && timer.high <= limit.high;
}

// The rule of compare/trial/advice/choice.py.

/** The offer to take; `enough` is a cost that decides nothing, 0 where the rate is not known. A host is kept within data.enough.host. */
function choose(offers, enough) {
  const byCost = [...offers].sort((a, b) => a.cost[0] - b.cost[0]);
  const [cheapest] = byCost;
  const limit = (offer) => offer.host ? data.enough.host * CORE : enough;
  let left = byCost.filter((offer) => offer.cost[1] <= cheapest.cost[2] || offer.cost[0] - cheapest.cost[0] <= limit(offer));
  const near = left.length, reasons = [];
  const preferences = {
    "is what the program has": (offer) => offer.host,
    "is exact": (offer) => offer.timer.exact,
    "takes the least memory": (offer) => offer.memory === null || offer.memory <= data.near * Math.min(...left.map((other) => other.memory ?? Infinity)),
    "has default parameters": (offer) => offer.timer.default,
    "is the usual choice": (offer) => offer.timer.usual,
  };
  for (const [reason, speaksFor] of Object.entries(preferences)) {
    const preferred = left.filter(speaksFor);
    if (preferred.length && preferred.length < left.length) {
      left = preferred;
      if (!left.includes(cheapest)) reasons.push(reason);
    }
  }
  return { chosen: left[0], cheapest, near, reasons };
}

/** The case that the controls describe: its rate, its pending timers, and an offer for each timer. */
function caseOf(form) {
  const own = data.cases[form.traffic];
  const setting = own ? { rate: own.rate, pending: own.pending } : settingOf(form);
  const { costs, host } = own ? { costs: own.costs, host: null } : data.callers[form.caller];
  const capacity = Math.max(Math.ceil(setting.pending), 1);
  const largest = (each) => own ? Infinity : sizesOf(each).at(-1);
  const most = own ? Infinity : Math.max(...Object.values(costs).map(largest));
  // Costs are not known beyond the sizes at which they were measured.
  const known = ([, each]) => setting.pending <= data.beyond * largest(each);
  const others = Object.entries(costs).filter((entry) => !known(entry)).map(([number]) => Number(number));
  const unknown = others.filter((number) => number !== host).map((number) => data.timers[number].name);
  const without = others.includes(host) ? data.timers[host].name : "";  // the program's own timers
  const offers = Object.entries(costs).filter(known).map(([number, each]) => {
    const timer = data.timers[number];
    // Without a rate, costs are those of an operation, and only the noise makes them equal.
    const cost = own ? each.map((ns) => ns * (own.rate || 1)) : costOf(setting, each);
    return { number: Number(number), timer, cost, memory: memoryOf(timer, capacity), host: Number(number) === host };
  });
  return { own, setting, capacity, offers, most, unknown, without };
}

/** What a program that was recorded on an event loop is told: the answer for its caller. */
function programOf(form, { caller, setting }) {
  const host = data.timers[data.callers[caller]?.host];
  const { chosen, said } = host ? verdict({ ...form, traffic: "", caller, setting }) : {};
  if (!chosen) return "";
  const use = chosen.host ? `keep ${host.name}` : `use ${chosen.timer.code.length ? "wheel_event_loop with " : ""}${chosen.timer.name}`;
  return `${data.cases[form.traffic].name} is of a program on ${host.name}: ${use}. ${said.slice(0, chosen.host ? 1 : 2).join(" ")}`;
}

/** Why a program keeps the timers of its host. */
function kept(host, cheapest) {
  if (host === cheapest) return "No timer of this run is cheaper.";
  const saved = host.cost[0] - cheapest.cost[0];
  const small = saved <= data.enough.host * CORE;
  return `${cheapest.timer.name} would save ${percent(saved / CORE)} of a core, ${small ? `which is less than ${percent(data.enough.host)} of a core` : "which is less than the noise"}.`;
}

function verdict(form) {
  const found = caseOf(form);
  const { own, setting, offers } = found;
  const limit = data.timers[form.precision];
  const where = own ? `${own.own ? "Your traffic" : "The workload"} ${own.name}${own.together ? ` (${own.together})` : ""}` : "";
  // A program may keep what it has, however precise that is.
  const ranking = offers.filter((offer) => offer.host || precise(offer.timer, limit)).sort((a, b) => a.cost[0] - b.cost[0]);
  if (setting.pending > data.beyond * found.most) {
    return { ...found, ranking: [], said: [`${grouped(Math.round(setting.pending))} timers would be pending. This caller was measured with up to ${grouped(found.most)}. Choose a lower rate or a shorter timeout.`] };
  }
  if (!ranking.length) {
    return { ...found, ranking, said: [`${where ? `${where}: n` : "N"}o timer in this run that is precise enough was measured in this case. Choose less precision.`] };
  }
  const rated = setting.rate > 0;
  const enough = data.enough[own ? "replayed" : "modelled"];
  const { chosen, cheapest, near, reasons } = choose(ranking, rated ? enough * CORE : 0);
  const each = (offer) => rated ? `${time(offer.cost[0])} of CPU in each second, ${percent(offer.cost[0] / CORE)} of a core` : `${time(offer.cost[0])} per operation`;
  if (rated && chosen.cost[0] > CORE) {
    const highest = setting.rate * CORE / cheapest.cost[0];
    const what = own ? "operations" : "timers";
    return { ...found, where, ranking, rated, said: [`Not possible with one core here: ${chosen.timer.name} would take ${time(chosen.cost[0])} of CPU in each second. The highest rate is about ${grouped(Number(highest.toPrecision(2)))} ${what} per second, with ${cheapest.timer.name}.`] };
  }
  const said = chosen.host ? [kept(chosen, cheapest)] : [];
  const most = Math.max(...ranking.map((offer) => offer.cost[2]));
  if (rated && most <= data.cheap) said.push(`Speed does not matter here: each of these timers takes at most ${time(most)} of CPU in each second, ${percent(most / CORE)} of a core.`);
  said.push(`${chosen.timer.name} costs ${each(chosen)}.`);
  const today = !chosen.host && ranking.find((offer) => offer.host);
  if (today) said.push(`That is ${percent((today.cost[0] - chosen.cost[0]) / CORE)} of a core less than ${today.timer.name}.`);
  if (reasons.length && !chosen.host) {
    const why = rated ? `the noise, or ${percent(enough)} of a core` : "the noise";
    said.push(`Within ${why}, ${near} timers cost the same. Of these, ${chosen.timer.name} ${listed(reasons)}. The cheapest is ${cheapest.timer.name} with ${times(cheapest.cost[0] / chosen.cost[0])} the cost.`);
    if (rated && chosen.cost[0] - cheapest.cost[0] > enough * CORE) said.push("Only the noise makes them equal: a run on a quieter machine may decide otherwise.");
  } else if (near > 1 && !chosen.host) {
    const others = ranking.filter((offer) => offer !== chosen && offer.cost[1] <= chosen.cost[2]);
    if (others.length) said.push(`Speed does not separate it from ${listed(others.map((offer) => offer.timer.name))}: their intervals overlap.`);
  }
  const second = chosen === cheapest && ranking.find((offer) => offer !== chosen);
  if (second) said.push(`The next is ${second.timer.name} with ${times(second.cost[0] / chosen.cost[0])} the cost.`);
  else if (ranking.length === 1) said.push("No other timer in this run that is precise enough was measured in this case.");
  const faster = offers.filter((offer) => !ranking.includes(offer) && offer.cost[2] < cheapest.cost[1]).sort((a, b) => a.cost[0] - b.cost[0])[0];
  if (faster && !(rated && cheapest.cost[0] - faster.cost[0] <= enough * CORE)) said.push(`Faster but less precise: ${faster.timer.name}, ${faster.timer.fires}, with ${times(faster.cost[0] / chosen.cost[0])} the cost.`);
  if (found.without) said.push(`${found.without} was not measured with so many pending.`);
  if (found.unknown.length) said.push(`Not measured with so many pending, because it takes longer than the budget: ${listed(found.unknown)}.`);
  if (own?.missing.length) said.push(`Not timed, because it takes longer than the budget: ${listed(own.missing)}.`);
  return { ...found, where, chosen, ranking, rated, said, inside: own?.program ? programOf(form, own.program) : "" };
}

function show(form) {
  const found = verdict(form);
  const shown = document.getElementById("verdict");
  shown.replaceChildren();
  if (found.inside) shown.append(element("p", found.inside, { class: "headline" }));
  if (found.chosen) {
    const { timer } = found.chosen;
    shown.append(
      element("p", [found.chosen.host ? "Keep " : found.inside ? "In other code: use " : found.where ? `${found.where}: use ` : "Use ", element("b", timer.name), `. It fires ${timer.fires === "exact" ? "exactly at the deadline" : timer.fires}.`], { class: "headline" }),
      ...(timer.code.length ? [element("pre", element("code", timer.code.join(pythonic(found.capacity))))] : []),
    );
  }
  shown.append(element("p", found.said.join(" ")));
  const per = found.own ? "operation" : "timer";
  const headings = ["timer", `per ${per}`, "", ...(found.rated ? ["in each second"] : []), "cost", "fires", "memory"];
  const top = found.ranking.at(-1)?.cost[0];
  const base = (found.chosen ?? found.ranking[0])?.cost[0];
  const rows = found.ranking.map(({ number, timer, cost: [median], memory }) => {
    const bar = element("span", "", { class: "cost", style: `width:${Math.max(100 * median / top, 0.5)}%` });
    const cells = [time(median / (found.setting.rate || 1)), bar, ...(found.rated ? [time(median)] : []), times(median / base), timer.fires, memory === null ? "–" : bytes(memory)];
    const row = element("tr", element("th", timer.name, { scope: "row" }), number === found.chosen?.number ? { class: "chosen" } : {});
    if (timer.code.length) row.dataset.series = number;  // peers are not in the legend
    row.append(...cells.map((cell, i) => element("td", cell, cell === bar ? { class: "bars" } : { class: i < cells.length - 2 ? "number" : "" })));
    return row;
  });
  const head = element("tr", headings.map((heading, i) => element("th", heading, { scope: "col", class: i === 2 ? "bars" : i && i < headings.length - 2 ? "number" : "" })));
  document.getElementById("ranking").replaceChildren(...(rows.length ? [element("thead", head), element("tbody", rows)] : []));
  document.getElementById("basis").textContent = found.own
    ? "The cost is the median CPU time of the replay for each operation, expiries included. Memory is that of a timer with room for the most timers that were pending at once."
    : `${grouped(Math.round(found.setting.pending))} timers are pending on average: the rate times the mean time in the timer. The cost of a second: a start and a cancel for ${percent(found.setting.share)} of the timers, a start and an expiry for the others, and ${grouped(Math.round(found.setting.steps))} ${data.callers[form.caller].own_clock ? "wake-ups" : "steps of the clock"}, each measured with as many timers pending. Delays were random; with equal ones, ordered-list and duration-lists cost less.`;
}

const pythonic = (number) => number.toLocaleString("en").replaceAll(",", "_");

/** The answer that is shown, as Markdown, with where it comes from. */
function markdown() {
  const text = (each) => each.textContent.replaceAll("|", "\\|").trim();
  const said = [...document.querySelectorAll("#verdict p")].map(text);
  const rows = [...document.querySelectorAll("#ranking tr")].map((row) => [...row.cells].filter((cell) => !cell.classList.contains("bars")).map(text));
  const lines = rows.map((row) => `| ${row.join(" | ")} |`);
  if (rows.length) lines.splice(1, 0, `|${"---|".repeat(rows[0].length)}`);
  const code = document.querySelector("#verdict pre");
  return [
    ...said,
    ...(code ? [`\`\`\`python\n${code.textContent}\n\`\`\``] : []),
    lines.join("\n"),
    document.getElementById("basis").textContent,
    `${document.getElementById("measured").textContent} By \`${document.getElementById("copy").dataset.command}\`: ${location.href}`,
  ].filter(Boolean).join("\n\n");
}

function copied(button) {
  const told = (text) => { button.textContent = text; };
  navigator.clipboard.writeText(markdown()).then(() => told("Copied"), () => told("The browser does not allow it"));
}

document.getElementById("copy")?.addEventListener("click", ({ target }) => copied(target));

const CASE = "#case?";  // in the address, before the settings: a link to send

function startCase() {
  const form = document.getElementById("case");
  const control = (name, label, options) => {
    if (!options.length) return;
    const select = element("select", options.map(([value, text, title]) => element("option", text, title ? { value, title } : { value })), { name });
    form.append(element("label", [label, " ", select]));
  };
  const callers = Object.entries(data.callers);
  const modelled = callers.length > 0;
  control("traffic", "Traffic", [...data.cases.map((one, i) => [i, one.name]), ...(modelled ? [["", "as set here"]] : [])]);
  control("precision", "Fires", data.precisions.map((number) => [number, data.timers[number].fires]));
  if (modelled) {
    control("rate", "Timers per second", data.rates.map((rate) => [rate, grouped(rate)]));
    control("timeout", "Timeout", data.timeouts.map((ms) => [ms, duration(ms)]));
    control("share", "Cancelled", data.shares.map((share) => [share, percent(share)]));
    control("answer", "after", data.answers.map((share) => [share, `${percent(share)} of the timeout`]));
    control("caller", "Called by", callers.map(([name, { title, meaning }]) => [name, title, meaning]));
    form.append(element("p", "", { id: "meaning", class: "note" }));
    Object.assign(form.rate, { value: 1000 });
    Object.assign(form.timeout, { value: 10000 });
    Object.assign(form.share, { value: 0.9 });
    Object.assign(form.answer, { value: 0.05 });
  }
  const values = () => Object.fromEntries([...form.elements].map((select) => [select.name, select.value]));
  const follow = () => {  // only the controls that apply are shown
    const own = data.cases[form.traffic.value];
    for (const label of form.querySelectorAll("label")) {
      label.hidden = Boolean(own) && !["traffic", "precision"].includes(label.querySelector("select").name);
    }
    if (!modelled) return;
    form.answer.parentElement.hidden ||= Number(form.share.value) === 0;
    document.getElementById("meaning").textContent = own ? "" : data.callers[form.caller.value].meaning;
  };
  form.traffic.value = modelled && !data.cases[0]?.own ? "" : "0";
  const answered = data.precisions.find((number) => verdict({ ...values(), precision: number }).chosen);
  form.precision.value = answered ?? data.precisions[0];
  const answer = () => {
    follow();
    show(values());
    startLoad(values());
  };
  const restore = () => {  // a value that this page does not offer changes nothing
    if (!location.hash.startsWith(CASE)) return;
    for (const [name, value] of new URLSearchParams(location.hash.slice(CASE.length))) {
      if ([...(form[name]?.options ?? [])].some((option) => option.value === value)) form[name].value = value;
    }
  };
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("change", () => {
    history.replaceState(null, "", `${CASE}${new URLSearchParams(values())}`);
    answer();
  });
  addEventListener("hashchange", () => {
    restore();
    answer();
  });
  restore();
  answer();
}

// ---- overload: lateness at the reader's rate

/** Lateness in milliseconds at a rate: that of the nearest load which was measured and is not below. */
function lateness({ capacity, loads, failure }, rate) {
  if (failure) return { said: `not measured: it ${failure}` };
  const share = rate / capacity;
  const load = Object.keys(loads).map(Number).sort((a, b) => a - b).find((each) => each * capacity >= 100 * rate);
  if (rate > capacity) return { share, said: `beyond its capacity: falls behind by ${significant(rate - capacity)} per second` };
  if (load === undefined) return { share, said: "not measured at this load" };
  return { share, load, late: loads[load] };
}

function showLoad(rate) {
  const shown = document.getElementById("lateness");
  if (!(rate > 0)) return shown.replaceChildren(element("caption", "Enter a rate above 0."));
  const number = { class: "number" };
  const headings = ["contender", "your load", "measured at", "p50 [ms]", "p99 [ms]", "p99.9 [ms]", "capacity [1/s]"];
  const rows = data.overload.map((contender) => {
    const { share, load, late, said } = lateness(contender, rate);
    const row = element("tr", element("th", contender.name, { scope: "row" }));
    const cells = said ? [] : [load > 100 ? `${load}\u00a0%, beyond capacity` : `${load}\u00a0%`, ...late.map((ms) => ms === null ? "–" : significant(ms))];
    row.append(
      element("td", share ? percent(share) : "–", number),
      ...(said ? [element("td", said, { colspan: 4 })] : cells.map((cell) => element("td", cell, number))),
      element("td", contender.capacity ? significant(contender.capacity) : "–", number),
    );
    return row;
  });
  const head = element("tr", headings.map((heading, i) => element("th", heading, i ? { scope: "col", ...number } : { scope: "col" })));
  shown.replaceChildren(element("thead", head), element("tbody", rows));
}

/** Take the rate over from the answer's controls; the reader may then enter another. */
function startLoad(form) {
  const load = document.getElementById("load");
  if (!load) return;
  load.rate.value = data.cases[form.traffic]?.started || form.rate || 1000;
  showLoad(load.rate.valueAsNumber);
}

document.getElementById("load")?.addEventListener("input", ({ target }) => showLoad(target.valueAsNumber));
document.getElementById("load")?.addEventListener("submit", (event) => event.preventDefault());

if (document.getElementById("case")) startCase();
else startLoad({});

// ---- the legend: hover or focus makes a timer stand out everywhere, a click hides it

const legend = document.querySelectorAll(".legend button");

function standOut(series) {
  for (const one of document.querySelectorAll("main [data-series]")) {
    one.classList.toggle("faint", series !== null && one.dataset.series !== series && !one.closest(".legend"));
    one.classList.toggle("out", one.dataset.series === series);
  }
}

for (const button of legend) {
  const { series } = button.dataset;
  for (const type of ["pointerenter", "focus"]) button.addEventListener(type, () => standOut(series));
  for (const type of ["pointerleave", "blur"]) button.addEventListener(type, () => standOut(null));
  button.addEventListener("click", () => {
    const shown = button.getAttribute("aria-pressed") !== "true";
    button.setAttribute("aria-pressed", shown);
    for (const one of document.querySelectorAll(`svg [data-series="${series}"], .table tr[data-series="${series}"]`)) {
      one.classList.toggle("gone", !shown);
    }
  });
}

// ---- values of the charts, by pointer and by arrow keys

const tip = document.getElementById("tip");
const NEAR = 24;  // CSS pixels

function middle(mark) {
  const box = mark.getBoundingClientRect();
  return [box.x + box.width / 2, box.y + box.height / 2];
}

function tell(mark, [x, y] = mark ? middle(mark) : []) {
  tip.hidden = !mark;
  if (!mark) return standOut(null);
  const { series = null, name, value } = mark.dataset;
  standOut(series);
  tip.replaceChildren(element("b", name ?? [...legend].find((one) => one.dataset.series === series).title), element("br"), value);
  const { width, height } = tip.getBoundingClientRect();
  tip.style.left = `${Math.max(Math.min(x + 12, document.documentElement.clientWidth - width - 4), 4)}px`;
  tip.style.top = `${y - height - 10 < 0 ? y + 14 : y - height - 10}px`;
}

for (const chart of document.querySelectorAll(".chart")) {
  const marks = () => [...chart.querySelectorAll("[data-value]:not(.gone)")];
  let at = -1;
  chart.addEventListener("pointermove", (event) => {
    const point = [event.clientX, event.clientY];
    const far = (mark) => Math.hypot(...middle(mark).map((place, i) => place - point[i]));
    const near = marks().reduce((a, b) => (a && far(a) <= far(b) ? a : b), null);
    tell(event.target.closest("[data-value]") ?? (near && far(near) <= NEAR ? near : null), point);
  });
  for (const type of ["pointerleave", "blur"]) chart.addEventListener(type, () => tell(null));
  chart.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    const found = marks();
    if (event.key === "Escape") tell(null);
    if (!step || !found.length) return;
    event.preventDefault();
    at = at < 0 && step < 0 ? found.length - 1 : (at + step + found.length) % found.length;
    tell(found[at]);
  });
}

// ---- tables: the chosen columns, sorted

for (const card of document.querySelectorAll(".table")) {
  const [head, ...rows] = card.querySelectorAll("tr");
  const selects = [...card.querySelectorAll("select")];
  const choose = () => {
    const chosen = Object.fromEntries(selects.map((select) => [select.dataset.facet, select.value]));
    [...head.cells].forEach((heading, column) => {
      const parts = [...heading.querySelectorAll("span")];
      const wanted = parts.every((part) => !chosen[part.dataset.facet] || chosen[part.dataset.facet] === part.textContent);
      const open = parts.filter((part) => chosen[part.dataset.facet] === "");
      for (const part of parts) part.hidden = open.length > 0 && !open.includes(part);
      for (const row of [head, ...rows]) row.cells[column].hidden = !wanted;
    });
  };
  card.addEventListener("change", choose);
  choose();
  // A click anywhere in a heading sorts; the button inside is for the keyboard.
  [...head.cells].forEach((heading, column) => heading.addEventListener("click", () => {
    const upwards = heading.getAttribute("aria-sort") !== "ascending";
    for (const other of head.cells) other.removeAttribute("aria-sort");
    heading.setAttribute("aria-sort", upwards ? "ascending" : "descending");
    const key = (row) => row.cells[column].dataset.value ?? row.cells[column].textContent;
    const number = (row) => { const text = key(row); return text === "inf" ? Infinity : Number(text); };
    const compare = (a, b) => {
      const [left, right] = [number(a), number(b)];
      if (Number.isNaN(left) || Number.isNaN(right)) return (upwards ? 1 : -1) * key(a).localeCompare(key(b));
      if (left === right) return 0;
      if (left === Infinity || right === Infinity) return left === Infinity ? 1 : -1;  // what was not measured comes last
      return upwards ? left - right : right - left;
    };
    rows.sort(compare).forEach((row) => row.parentNode.append(row));
  }));
}

// ---- folded sections: a link opens its section, and printing all of them

const unfold = () => document.getElementById(location.hash.slice(1))?.closest("details")?.setAttribute("open", "");
addEventListener("hashchange", unfold);
unfold();
let folded = [];
addEventListener("beforeprint", () => {
  folded = [...document.querySelectorAll("details:not([open])")];
  for (const details of folded) details.open = true;
});
addEventListener("afterprint", () => { for (const details of folded) details.open = false; });
