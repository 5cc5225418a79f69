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

/** The costs of a case by timer: [number, median, low, high] in ns, the cheapest first. */
function ranked(form) {
  const own = data.cases[form.traffic];
  const share = Number(form.share);
  const costs = own ? own.costs : data.callers[form.caller][form.size] ?? {};
  const added = ({ hold, insert, expiry }) => hold.map((ns, i) => share * ns + (1 - share) * (insert[i] + expiry[i]));
  return Object.entries(costs)
    .map(([number, cost]) => [Number(number), ...(own ? cost : added(cost))])
    .sort((a, b) => a[1] - b[1]);
}

/** Whether a timer fires within what another one allows. */
function precise(timer, limit) {
  const comparable = timer.unit === limit.unit || (timer.low === 0 && timer.high === 0);
  return comparable && timer.low >= limit.low && timer.high <= limit.high;
}

function verdict(form) {
  const own = data.cases[form.traffic];
  const rate = own ? own.rate : Number(form.rate);
  const limit = data.timers[form.precision];
  const all = ranked(form);
  const ranking = all.filter(([number]) => precise(data.timers[number], limit));
  const where = own ? `${own.own ? "Your traffic" : "The workload"} ${own.name}${own.together ? ` (${own.together})` : ""}` : "";
  if (!ranking.length) {
    return { ranking, rate, said: [`${where ? `${where}: n` : "N"}o timer in this run that is precise enough was measured in this case. Choose ${own ? "" : "fewer pending timers or "}less precision.`] };
  }
  const per = own ? "operation" : "timer";
  const [[first, best, low, high], second] = ranking;
  const tied = ranking.slice(1).filter((other) => other[2] <= high);
  const most = Math.max(...ranking.map((other) => other[3])) * rate;
  const said = [];
  if (rate && most <= data.cheap) {
    said.push(`Speed does not matter here: each of these timers takes at most ${time(most)} of each second, ${percent(most / 1e9)} of a core. Choose by precision and memory.`);
  }
  const each = rate ? `, ${time(best * rate)} of each second (${percent(best * rate / 1e9)} of a core)` : "";
  said.push(`${data.timers[first].name} has the lowest median: ${time(best)} per ${per}${each}.`);
  if (tied.length) {
    said.push(`Speed does not separate it from ${listed(tied.map(([number]) => data.timers[number].name))}: their intervals overlap.`);
  }
  if (second) {
    said.push(`The runner-up is ${data.timers[second[0]].name} with ${times(second[1] / best)} the cost (${times(second[2] / high).replace("\u00a0times", "")} to ${times(second[3] / low)}).`);
  } else {
    said.push("No other timer in this run that is precise enough was measured in this case.");
  }
  const faster = all.find((other) => !ranking.includes(other) && other[3] < low);
  if (faster) said.push(`Faster but less precise: ${data.timers[faster[0]].name}, ${data.timers[faster[0]].fires}, with ${times(faster[1] / best)} the cost.`);
  return { where, first, ranking, rate, per, said };
}

const memoryOf = (timer, pending) => {
  const sizes = Object.keys(timer.memory).map(Number);
  return sizes.length ? timer.memory[nearest(sizes, pending)] : "–";
};
const nearest = (values, target) => values.reduce((a, b) => Math.abs(Math.log((b || 1e-9) / (target || 1e-9))) < Math.abs(Math.log((a || 1e-9) / (target || 1e-9))) ? b : a);
const closest = (values, target) => values.reduce((a, b) => Math.abs(b - target) < Math.abs(a - target) ? b : a);

function show(form) {
  const found = verdict(form);
  const pending = data.cases[form.traffic]?.pending ?? Number(form.size);
  const shown = document.getElementById("verdict");
  shown.replaceChildren();
  if (found.first !== undefined) {
    const timer = data.timers[found.first];
    shown.append(
      element("p", [found.where ? `${found.where}: use ` : "Use ", element("b", timer.name), `. It fires ${timer.fires === "exact" ? "exactly at the deadline" : timer.fires}.`], { class: "headline" }),
      element("pre", element("code", timer.code)),
    );
  }
  shown.append(element("p", found.said.join(" ")));
  const headings = ["timer", `per ${found.per}`, "", ...(found.rate ? ["of each second"] : []), "cost", "fires", "memory per timer"];
  const top = found.ranking.at(-1)?.[1];
  const rows = found.ranking.map(([number, median]) => {
    const timer = data.timers[number];
    const bar = element("span", "", { class: "cost", style: `width:${Math.max(100 * median / top, 0.5)}%` });
    const cells = [time(median), bar, ...(found.rate ? [time(median * found.rate)] : []), times(median / found.ranking[0][1]), timer.fires, memoryOf(timer, pending)];
    const row = element("tr", element("th", timer.name, { scope: "row" }), { "data-series": number });
    row.append(...cells.map((cell, i) => element("td", cell, cell === bar ? { class: "bars" } : { class: i < cells.length - 2 ? "number" : "" })));
    return row;
  });
  const head = element("tr", headings.map((heading, i) => element("th", heading, { scope: "col", class: i && i < headings.length - 2 ? "number" : "" })));
  document.getElementById("ranking").replaceChildren(...(rows.length ? [element("thead", head), element("tbody", rows)] : []));
  document.getElementById("basis").textContent = data.cases[form.traffic]
    ? "The cost is the median time of the replay for each operation, expiries included."
    : `The cost of a timer: ${percent(Number(form.share))} of a hold (it is cancelled) and ${percent(1 - form.share)} of an insert and an event-driven expiry (it fires), with ${grouped(Number(form.size))} pending.${form.caller.startsWith("Python") ? " A hold from Python is a schedule and a cancel with 5\u202f000 pending, an insert half of that, and an expiry that of compiled code." : ""}`;
}

function startCase() {
  const form = document.getElementById("case");
  const control = (name, label, options) => {
    if (!options.length) return;
    const select = element("select", options.map(([value, text]) => element("option", text, { value })), { name });
    form.append(element("label", [label, " ", select]));
  };
  const modelled = data.sizes.length > 0;
  control("traffic", "Traffic", [...data.cases.map((one, i) => [i, one.name]), ...(modelled ? [["", "as set here"]] : [])]);
  if (modelled) control("size", "Pending timers", data.sizes.map((size) => [size, grouped(size)]));
  control("precision", "Fires", data.precisions.map((number) => [number, data.timers[number].fires]));
  if (modelled) {
    control("share", "Cancelled", data.shares.map((share) => [share, percent(share)]));
    control("caller", "Called by", Object.keys(data.callers).map((name) => [name, name]));
    control("rate", "Timers per second", data.rates.map((rate) => [rate, grouped(rate)]));
  }
  const values = () => Object.fromEntries([...form.elements].map((select) => [select.name, select.value]));
  const follow = () => {  // the controls start from what was replayed
    const own = data.cases[form.traffic.value];
    if (!own || !modelled) return;
    form.size.value = nearest(data.sizes, own.pending);
    form.share.value = closest(data.shares, own.share);
    if (own.timers_per_second) form.rate.value = nearest(data.rates, own.timers_per_second);
  };
  if (modelled) {
    form.size.value = nearest(data.sizes, 1e5);
    form.share.value = 0.9;
    form.rate.value = 1e5;
  }
  form.traffic.value = modelled && !data.cases[0]?.own ? "" : "0";
  follow();
  const answered = data.precisions.find((number) => verdict({ ...values(), precision: number }).ranking.length);
  form.precision.value = answered ?? data.precisions[0];
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("change", ({ target }) => {
    if (target.name === "traffic") follow();
    else if (target.name !== "precision") form.traffic.value = "";
    show(values());
  });
  show(values());
}

if (data) startCase();

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
  const { series, value } = mark.dataset;
  standOut(series);
  tip.replaceChildren(element("b", [...legend].find((one) => one.dataset.series === series).title), element("br"), value);
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
  [...head.cells].forEach((heading, column) => heading.querySelector("button").addEventListener("click", () => {
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
