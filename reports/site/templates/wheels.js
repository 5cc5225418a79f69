"use strict";
// The page of the wheels. What is seen follows from the address: timer, tick, slots, levels, load, at.
const $ = (id) => document.getElementById(id);
const PARAMETERS = { tick: "tick", slots: "wheel_size", levels: "levels" }; // control -> parameter
const USES = { heap: [], ring: ["tick", "slots"], "hashed-wheel": ["tick", "slots"], "hierarchical-wheel": ["tick", "slots"], "cascading-wheel": ["tick", "slots", "levels"] };
const SETTINGS = { walk: { slots: 10, levels: 3 }, burst: { slots: 10, levels: 3 }, idle: { timer: "ring", slots: 30 }, none: {} };
const IN_ADDRESS = 6000; // characters of operations
const WORK = { // counter -> its name, its colour in the bars, and the counter of those that were in vain
  wake_ups: ["wake-ups", "#0072b2", "idle_wake_ups", "with nothing due"],
  slots_visited: ["slots visited", "#e69f00", "empty_slots", "empty"],
  timers_touched: ["timers looked at", "#cc79a7"], refiled: ["cascades (filed again)", "#d55e00"],
  queue_polls: ["buckets polled", "#009e73", "empty_polls", "empty"], comparisons: ["comparisons", "#7a7f87"],
};

// Six connections that are used now and then, and close after 30 units without use.
EXAMPLES.idle = [0, 1, 2, 3, 4, 5].flatMap((id) =>
  Array.from({ length: 1 + id }, (_, k) => [k * (7 + id), k ? ARM : START, id, k * (7 + id) + 30])).sort((a, b) => a[0] - b[0]);
EXAMPLES.none = [];

let operations = [], load = "walk", driver, running = null;

const chosen = () => Object.fromEntries(Object.entries(PARAMETERS).map(([control, name]) => [name, Number($(control).value)]));

function attempt(action) {
  $("problem").textContent = "";
  try {
    action();
    return true;
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    $("problem").textContent = `${error.message[0].toUpperCase()}${error.message.slice(1)}.`;
    return false;
  }
}

// ---- moving the clock

/** Show the state at a moment: the stops until then are made again, and the last one is told. */
function show(at) {
  const made = () => new Driver($("timer").value, chosen(), operations);
  driver = made();
  attempt(() => {
    const passed = made().run(at).moments, before = passed.findLast((moment) => moment < passed.at(-1));
    driver = made();
    if (before !== undefined) driver.run(before);
    while (driver.nextStop <= at) driver.step();
  });
  draw();
}

function step() {
  const left = driver.nextStop !== undefined;
  if (left && attempt(() => driver.step())) draw();
  return left && !$("problem").textContent;
}

const back = () => show(driver.moments.findLast((moment) => moment < driver.now) ?? -1);
const last = () => show(Infinity);

function stop() {
  clearTimeout(running);
  running = null;
  $("run").setAttribute("aria-pressed", "false");
  $("run").textContent = "Run";
}

/** Step until nothing is left. Empty ticks pass quickly; where motion is unwanted, they are not shown. */
function run() {
  const idle = () => driver.text.endsWith("Nothing happens.");
  const go = () => {
    let more = step();
    if (matchMedia("(prefers-reduced-motion: reduce)").matches) while (more && idle()) more = step();
    if (more && driver.nextStop !== undefined) running = setTimeout(go, idle() ? 30 : 900);
    else stop();
  };
  if (driver.nextStop === undefined) show(-1);
  $("run").setAttribute("aria-pressed", "true");
  $("run").textContent = "Stop";
  running = 1;
  go();
}

// ---- drawing

const SVG = (tag, attributes, content = "") =>
  `<${tag}${Object.entries(attributes).map(([name, value]) => ` ${name}="${value}"`).join("")}>${content}</${tag}>`;
const label = (x, y, content, more = {}) => SVG("text", { x: x.toFixed(1), y: y.toFixed(1), "text-anchor": "middle", ...more }, content);

function ring({ tick, slots, hand }, title, x, y, radius) {
  const inner = radius * 0.7, turn = (2 * Math.PI) / slots.length;
  const on = (r, angle) => `${(x + r * Math.sin(angle)).toFixed(1)} ${(y - r * Math.cos(angle)).toFixed(1)}`;
  const parts = [], top = [];
  let waiting = 0, named = 0;
  const marked = slots.filter((slot) => slot.size).length;
  if (slots.length > 720) parts.push(`<circle class="slot" cx="${x}" cy="${y}" r="${radius}"/><circle class="slot" cx="${x}" cy="${y}" r="${inner}"/>`);
  for (const [k, slot] of slots.entries()) {
    waiting += slot.size;
    if (slots.length > 720 && !slot.size && k !== hand) continue;
    const half = Math.max(turn / 2, slot.size || k === hand ? 0.012 : 0), [a, b] = [k * turn - half, k * turn + half];
    const path = `M${on(radius, a)}A${radius} ${radius} 0 ${b - a > Math.PI ? 1 : 0} 1 ${on(radius, b)}L${on(inner, b)}A${inner} ${inner} 0 ${b - a > Math.PI ? 1 : 0} 0 ${on(inner, a)}Z`;
    const shape = SVG("path", { d: path, class: `slot${slot.size ? " held" : ""}${k === hand ? " hand" : ""}` });
    (k === hand ? top : parts).push(shape);
    const [cx, cy] = on((radius + inner) / 2, k * turn).split(" ").map(Number);
    if (slots.length <= 24) top.push(label(cx, cy + 4, k, { class: slot.size ? "on" : "" }));
    if (slot.size && marked <= 10) {
      const timers = [...slot], words = timers.slice(0, 3).map((timer) => timer.deadline);
      if (timers.length > 3) words.splice(2, 1, `+${timers.length - 2}`);
      const outside = on(radius + 14, k * turn).split(" ").map(Number), sine = Math.sin(k * turn), up = Math.cos(k * turn);
      const anchor = Math.abs(sine) < 0.3 ? "middle" : sine > 0 ? "start" : "end";
      const rise = up > 0.3 ? (words.length - 1) * 15 : up < -0.3 ? -8 : ((words.length - 1) * 15) / 2 - 4;
      words.forEach((word, n) => {
        const moved = driver.moved.has(driver.operations[timers[Math.min(n, timers.length - 1)].operation][2]);
        top.push(label(outside[0], outside[1] - rise + n * 15, word, { "text-anchor": anchor, class: moved ? "moved" : "" }));
      });
      named++;
    }
  }
  [title, `a slot is ${shown(tick)}`, `${shown(waiting)} waiting`].filter(Boolean).forEach((line, n, all) =>
    top.push(label(x, y + 5 + (n - (all.length - 1) / 2) * 18, line, { class: title && !n ? "bold" : "" })));
  return [...parts, ...top].join("");
}

function tree(heap, width) {
  const depth = Math.min(width < 600 ? 4 : 5, Math.ceil(Math.log2(heap.length + 1))), parts = [];
  const at = (k) => { const row = Math.floor(Math.log2(k + 1)); return [(width * (k + 1 - 2 ** row + 0.5)) / 2 ** row, 30 + 58 * row]; };
  for (let k = 0; k < Math.min(heap.length, 2 ** depth - 1); k++) {
    const [x, y] = at(k), [px, py] = at((k - 1) >> 1);
    if (k) parts.unshift(SVG("line", { x1: px, y1: py, x2: x, y2: y, class: "edge" }));
    const half = Math.min(24, width / 2 ** depth), first = k === 0;
    parts.push(SVG("rect", { x: x - half, y: y - 14, width: 2 * half, height: 28, rx: 6, class: `slot held${first ? " hand" : ""}` }), label(x, y + 5, heap[k].deadline, { class: "on" }));
  }
  const rest = heap.length - (2 ** depth - 1);
  if (rest > 0) parts.push(label(width / 2, 40 + 58 * depth, `and ${shown(rest)} more below`));
  if (!heap.length) parts.push(label(width / 2, 40, "the heap is empty"));
  return [parts.join(""), 60 + 58 * depth];
}

function draw() {
  const { structure } = driver, width = Math.max(300, $("drawing").clientWidth || 700);
  let picture, height;
  if (structure.levels) {
    const levels = structure.levels.slice(0, 9), across = Math.min(levels.length, width < 600 ? 1 : 3);
    const side = Math.min(width / across, across === 1 ? 400 : 340), left = (width - side * across) / 2;
    picture = levels.map((level, k) => ring(level, structure.wheels ? `level ${k + 1}` : "", left + side * ((k % across) + 0.5), side * (Math.floor(k / across) + 0.5), side / 2 - 58)).join("");
    height = side * Math.ceil(levels.length / across);
    if (structure.queue) {
      const next = structure.queue.slice(-8).reverse().map((bucket) => `${bucket.begins} (${driver.placeOf(bucket)})`);
      const rows = width < 600 ? next : [next.slice(0, 4).join(",  "), next.slice(4).join(",  ")].filter(Boolean);
      const head = `queue of ${structure.queue.length} bucket${structure.queue.length === 1 ? "" : "s"}${next.length ? ", the next ones:" : ""}`;
      [head, ...rows].forEach((line, n) => { picture += label(width / 2, height + 14 + 20 * n, line, { class: n ? "" : "bold" }); });
      height += 30 + 20 * rows.length;
    }
  } else [picture, height] = tree(structure.heap, width);
  $("drawing").innerHTML = `<svg viewBox="0 0 ${width} ${Math.ceil(height)}" aria-hidden="true">${picture}</svg>`;
  $("drawing").setAttribute("aria-label", `${$("timer").selectedOptions[0].text} with ${driver.pending.size} pending timers. ${driver.text}`);
  $("said").textContent = driver.text;
  const told = Object.keys(WORK).filter((name) => driver.work[name]).map((name) => `${shown(driver.work[name])} ${WORK[name][0]}${inVain(driver.work, name)}`);
  $("clock").textContent = `clock ${shown(driver.now)}, ${shown(driver.pending.size)} pending, ${shown(driver.fired.count)} fired`;
  $("counted").textContent = `Work so far: ${told.join(", ") || "none"}.`;
  const held = $("pending").value;
  $("pending").replaceChildren(...[...driver.pending].slice(0, 200).map(([id, { deadline }]) => new Option(`${deadline} (timer ${id})`, id)));
  if (driver.pending.has(Number(held)) && held) $("pending").value = held;
  for (const id of ["touch", "cancel", "pending"]) $(id).disabled = !driver.pending.size;
  for (const id of ["step", "last"]) $(id).disabled = driver.nextStop === undefined;
  for (const id of ["back", "first"]) $(id).disabled = !driver.moments.length;
  for (const control of Object.keys(PARAMETERS)) $(control).disabled = !USES[$("timer").value].includes(control);
  remember();
}

function costs() {
  const rows = Object.keys(SCHEMES).map((name) => {
    try {
      const one = new Driver(name, chosen(), operations).run(Infinity);
      return { name, work: one.work, fired: one.fired };
    } catch (error) {
      if (!(error instanceof RangeError)) throw error;
      return { name, problem: error.message };
    }
  });
  const parts = Object.keys(WORK).filter((name) => rows.some(({ work }) => work && name in work));
  const total = ({ work }) => parts.reduce((sum, name) => sum + (work?.[name] ?? 0), 0), most = Math.max(1, ...rows.map(total));
  const head = `<thead><tr><th scope="col">timer</th><th scope="col">all steps</th>${parts.map((name) => `<th scope="col" class="number">${WORK[name][0]}</th>`).join("")}<th scope="col">fires</th></tr></thead>`;
  const body = rows.map((row) => {
    const option = [...$("timer").options].find(({ value }) => value === row.name), title = option.text.split(/[,(]/)[0];
    const begin = `<tr${row.name === $("timer").value ? ' class="here"' : ""}><th scope="row">${title}</th>`;
    if (row.problem) return `${begin}<td colspan="${parts.length + 2}">not possible: ${row.problem}</td></tr>`;
    const bar = parts.map((name) => `<span style="width:${(100 * (row.work[name] ?? 0)) / most}%;background:${WORK[name][1]}"></span>`).join("");
    const cells = parts.map((name) => `<td class="number">${name in row.work ? shown(row.work[name]) : "–"}<small>${inVain(row.work, name)}</small></td>`).join("");
    const { late, early } = row.fired, fires = early ? `up to ${shown(early)} early` : late ? `up to ${shown(late)} late` : "exactly";
    return `${begin}<td>${shown(total(row))}<div class="bar" aria-hidden="true">${bar}</div></td>${cells}<td>${fires}</td></tr>`;
  });
  $("costs").innerHTML = `${head}<tbody>${body.join("")}</tbody>`;
  $("key").innerHTML = parts.map((name) => `<span class="nowrap"><span class="what" style="background:${WORK[name][1]}"></span>${WORK[name][0]}</span>`).join(" &nbsp; ");
}

/** How many of a counter were in vain, such as " (3 empty)". */
function inVain(work, name) {
  const [, , counter, word] = WORK[name];
  return work[counter] ? ` (${shown(work[counter])} ${word})` : "";
}

// ---- the address

function remember() {
  const kept = load in EXAMPLES ? load : written(operations.slice(0, IN_ADDRESS)); // one takes more than a character
  const values = { timer: $("timer").value, tick: $("tick").value, slots: $("slots").value, levels: $("levels").value };
  values.load = kept.length <= IN_ADDRESS ? kept : "";
  if (driver.moments.length) values.at = driver.now;
  history.replaceState(null, "", `#${new URLSearchParams(values)}`);
  if (kept.length > IN_ADDRESS) $("problem").textContent ||= "These operations are too long for the address, which keeps the settings alone.";
}

function restore() {
  const given = new URLSearchParams(location.hash.slice(1));
  for (const id of ["timer", ...Object.keys(PARAMETERS)]) {
    if (!given.has(id)) continue;
    const before = $(id).value;
    $(id).value = given.get(id);
    if (!$(id).checkValidity() || !$(id).value) $(id).value = before;
  }
  load = given.get("load") || "walk";
  let sound = true;
  if (!(load in EXAMPLES)) sound = attempt(() => { operations = read(load); });
  if (!sound) load = "walk";
  if (load in EXAMPLES) operations = EXAMPLES[load];
  const problem = $("problem").textContent;
  show(given.has("at") && given.get("at") !== "" ? Number(given.get("at")) || 0 : 0);
  $("problem").textContent ||= problem;
  costs();
}

/** Go on from here with other operations. */
function use(given, name, at = 0) {
  stop();
  operations = given;
  load = name;
  show(at);
  costs();
}

const add = (operation) => {
  const now = driver.now, after = operations.findIndex(([time]) => time > now);
  const place = after < 0 ? operations.length : after;
  use([...operations.slice(0, place), operation, ...operations.slice(place)], "", now);
};

// ---- controls

for (const button of document.querySelectorAll("[data-load]"))
  button.addEventListener("click", () => {
    const name = button.dataset.load;
    for (const [id, value] of Object.entries({ ...SETTINGS[name], ...button.dataset })) if ($(id) && id !== "load") $(id).value = value;
    use(EXAMPLES[name], name);
    if (button.closest("#lesson")) document.querySelector("main > section").scrollIntoView();
  });
for (const id of ["timer", ...Object.keys(PARAMETERS)])
  $(id).addEventListener("change", () => {
    if (!$(id).checkValidity() || !$(id).value) {
      $("problem").textContent = `${id} must be a whole number from ${$(id).min} to ${$(id).max}.`;
      return;
    }
    use(operations, load, driver.moments.length ? driver.now : -1);
  });
const actions = { first: () => show(-1), back, step, last };
for (const [id, action] of Object.entries(actions)) $(id).addEventListener("click", () => { stop(); action(); });
$("run").addEventListener("click", () => (running === null ? run() : stop()));
$("start").addEventListener("click", () => {
  if (!$("delay").checkValidity() || !$("delay").value) return void ($("problem").textContent = `The delay must be a whole number from 0 to ${$("delay").max}.`);
  const id = 1 + Math.max(-1, ...operations.map((operation) => operation[2]));
  add([driver.now, START, id, driver.now + Number($("delay").value)]);
});
$("touch").addEventListener("click", () => add([driver.now, ARM, Number($("pending").value), driver.now + Number($("delay").value)]));
$("cancel").addEventListener("click", () => add([driver.now, CANCEL, Number($("pending").value), 0]));
$("use").addEventListener("click", () => attempt(() => use(operationsOfLog($("log").value, Number($("timeout").value)), "")));
$("file").addEventListener("change", async () => {
  const buffer = await $("file").files[0]?.arrayBuffer();
  if (!buffer) return;
  const isTape = new TextDecoder().decode(new Uint8Array(buffer, 0, Math.min(7, buffer.byteLength))) === "WHLTAPE";
  attempt(() => use(isTape ? operationsOfTape(buffer) : operationsOfLog(new TextDecoder().decode(buffer), Number($("timeout").value)), ""));
});
document.addEventListener("keydown", (event) => {
  // A reader who has left the wheel behind scrolls.
  if (document.querySelector("main > section").getBoundingClientRect().bottom < 100) return;
  if (event.ctrlKey || event.altKey || event.metaKey || event.target.closest("input, select, textarea, pre, .scroll")) return;
  if (event.key === " " && event.target.closest("button, summary, a")) return;
  const key = { ArrowLeft: "back", ArrowRight: "step", Home: "first", End: "last" }[event.key];
  if (key) { stop(); if (!$(key).disabled) actions[key](); }
  else if (event.key === " ") running === null ? run() : stop();
  else return;
  event.preventDefault();
});
addEventListener("hashchange", restore);
addEventListener("resize", () => draw());
restore();
