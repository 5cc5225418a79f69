// ---- a wheel tuned by hand: the arithmetic of compare/trial/advice/tuning.py, and its panel

const MOST = 2 ** 30;  // of a tick in ms, and of slots
const { FAMILIES, PARTS, MANY, IN_TIME, LONGEST, FIXED } = data.tuning;

/** [delay, share] of the timers. */
function delaysOf({ kind, timeout }) {
  const places = Array.from({ length: PARTS }, (_, k) => (k + 0.5) / PARTS);
  if (kind === "random") return places.map((place) => [2 * timeout * place, 1 / PARTS]);
  if (kind === "periodic") return places.map((place) => [timeout * Math.log(3) * (0.5 + place), 1 / PARTS]);
  if (kind === "few") return TIMEOUTS.map((each) => [timeout * each, 1 / TIMEOUTS.length]);
  return [[timeout, 1]];
}

/** The share of the timers that is pending at this age, below their delay. */
function aliveAt(traffic, delay, at) {
  const answered = Math.max(traffic.answer, 1e-9), latest = IN_TIME * delay, age = Math.max(at, 0);
  const left = age < latest ? Math.exp(-age / answered) - Math.exp(-latest / answered) * age / latest : 0;
  return 1 - traffic.cancelled + traffic.cancelled * Math.max(left, 0);
}

/** What a wheel with this tick, in ms, and so many slots does in a second: { wakeups, visits, moves }. */
const workOf = (family, traffic, tick, slots) => (family.kind === "rounds" ? workOfRounds : workOfLevels)(family, traffic, tick, slots);

function workOfRounds(family, traffic, tick, slots) {
  const rotation = tick * slots, clock = UNITS / tick;
  let visits = 0;
  for (const [delay, share] of delaysOf(traffic)) {
    const turns = Math.floor(delay / rotation);
    let seen = (traffic.cancelled * traffic.answer + (1 - traffic.cancelled) * delay) / rotation;
    if (turns <= MANY) {
      seen = 0;
      for (let k = 1; k <= turns; k++) seen += aliveAt(traffic, delay, delay - k * rotation);
    }
    visits += share * seen;
  }
  visits *= traffic.rate;
  return { wakeups: family.always ? clock : met(visits + traffic.rate * (1 - traffic.cancelled), clock), visits, moves: 0 };
}

function workOfLevels(family, traffic, tick, slots) {
  const arrivals = [];
  let moves = 0;
  for (const [delay, share] of delaysOf(traffic)) {
    let top = 0;
    while (delay >= tick * slots ** (top + 1)) top++;
    const left = Array(top + 1).fill(0);  // timers that come to each wheel in a second
    left[top] = traffic.rate * share;
    for (let level = top; level >= 0; level--) {
      const width = tick * slots ** level;
      const stays = level < top ? left[level] : left[top] * aliveAt(traffic, delay, delay - width / 2);
      arrivals[level] = (arrivals[level] ?? 0) + (family.lingers ? left[level] : stays);
      if (!level) continue;
      moves += stays;
      for (let lower = 0; lower < level; lower++) {
        left[lower] += stays * (slots ** (lower + 1) - (lower ? slots ** lower : 1)) / slots ** level;
      }
    }
  }
  const wakeups = arrivals.reduce((sum, timers, level) => sum + met(timers, UNITS / (tick * slots ** level)), 0);
  return { wakeups, visits: 0, moves };
}

/** The traffic of as many pending timers while nobody calls, so that all of them fire. */
const idleOf = (traffic) => ({ ...traffic, rate: 1_000 * pendingOf(traffic) / traffic.timeout, cancelled: 0, answer: 0, step: 1, pending: undefined });

const longestOf = ({ kind, timeout }) => (LONGEST[kind] ?? 1) * timeout;
const defaultOf = ({ tick, slots }) => [tick?.default ?? 1, slots?.default ?? FIXED];

/** [tick, slots]: the longest tick that may be `off` by so many ms, and slots for all delays. */
function recommendedOf(family, traffic, off) {
  let tick = 1;
  if (family.tick) {
    const allowed = Math.max(family.rounding === "down" ? off + 1 : off, 1);
    const series = family.tick.powers ? Array.from({ length: 31 }, (_, k) => 2 ** k) : Array.from({ length: 27 }, (_, k) => [1, 2, 5][k % 3] * 10 ** Math.floor(k / 3));
    tick = Math.max(...series.filter((each) => each <= allowed));
  }
  return [tick, slotsOf(family, traffic, tick)];
}

/** As many slots as all delays need with this tick. */
function slotsOf(family, traffic, tick) {
  if (!family.slots) return FIXED;
  let slots = 8;
  while (slots * tick <= longestOf(traffic) && slots < 1 << 20) slots *= 2;
  return slots;
}

/** Nanoseconds of CPU in a second with the figures of a peer; null where none are stored. */
function paidBy({ paid, kind }, traffic, work, tick) {
  if (!paid) return null;
  const [ends, lost] = ratesOf(traffic);
  const ticks = kind === "rounds" ? UNITS / tick : work.wakeups;
  return ends * paid.pair + lost * (paid.start + paid.visit) + ticks * paid.tick + work.visits * paid.visit;
}

/** The same with the figures of a contestant of this run that has this setting, for a caller; null if there is none. */
function paidFor({ fits }, { timer: scheme }, traffic, tick, slots) {
  const [number] = Object.entries(fits[traffic.kind] ?? {}).find(([number]) => {
    const { timer, unit, parameters } = data.timers[number];
    return scheme && timer === scheme && (unit === "ms" || !parameters.tick) && (parameters.tick ?? 1) === tick && parameters.wheel_size === slots;
  }) ?? [];
  return number === undefined ? null : costOf(traffic, fits[traffic.kind][number])[0];
}

/** Bytes with so many pending; null where nothing is known. */
function heldBy({ memory }, pending, slots) {
  if (!memory) return null;
  const { fixed, timer, slot } = memory;
  return fixed + timer * Math.ceil(pending) + slot * slots;
}

const latenessOf = ({ rounding }, tick) => ({ up: `up to ${duration(tick)} late`, down: tick > 1 ? `up to ${duration(tick - 1)} early` : "exact", exact: "exact" })[rounding];

/** The rows of the panel: what is asked, and the answer for a setting. */
function tunedRows(family, caller, traffic, [tick, slots]) {
  const work = workOf(family, traffic, tick, slots), idle = idleOf(traffic), quiet = workOf(family, idle, tick, slots);
  const core = (ns) => ns === null ? "not measured" : ns < 1e4 ? `below 0.001${SPACE}%` : percent(ns / CORE);
  const counts = (number) => number >= 10 ? grouped(Number(number.toPrecision(3))) : significant(number);
  const alone = paidBy(family, { ...idle, rate: 0, pending: pendingOf(traffic) }, quiet, tick);
  const memory = heldBy(family, pendingOf(traffic), slots);
  return {
    [family.tick?.name ?? "tick"]: duration(tick),
    [family.slots?.name ?? "slots"]: grouped(slots),
    "a rotation takes": duration(tick * slots),
    "a timer fires": latenessOf(family, tick),
    "wake-ups per second": counts(work.wakeups),
    ...(family.kind === "levels" ? { "timers moved down per second": counts(work.moves) } : { "timers looked at in vain per second": counts(work.visits) }),
    "CPU, of a core": core(paidBy(family, traffic, work, tick) ?? paidFor(caller, family, traffic, tick, slots)),
    ...(alone === null ? {} : { "the same while nobody calls": core(alone) }),
    "memory": memory === null ? "not measured" : bytes(memory),
  };
}

/** Where the figures of a family come from. */
function basisOf(family, [tick, slots]) {
  const counts = "Wake-ups and timers are counted from the traffic and the setting.";
  if (family.paid) return `${counts} CPU times follow from what this run measured of ${family.peer}${family.kind === "levels" ? ", with as many moves as there" : ""}. They are rough: it was measured with one setting. To be woken up costs a thread some microseconds more, which were not measured.`;
  if (family.peer) return `${counts} CPU times are not known: this run has no figures of ${family.peer}. To measure them: wheelwork report --peers ${family.peer}`;
  return `${counts} Memory is that of such a timer, and CPU time that of a contestant with this setting. To measure this one: wheelwork compare --timers ${[family.timer, family.tick && `tick=${tick}ms`, `wheel-size=${slots}`].filter(Boolean).join("/")}`;
}

function showTuning(values) {
  const panel = document.getElementById("tuning");
  if (!panel) return;
  const { traffic } = data.cases[values.traffic] ? {} : trafficOf(values);
  panel.hidden = !traffic;
  if (!traffic) return;
  const family = FAMILIES[values["tune-family"]] ?? Object.values(FAMILIES)[0];
  const given = (name, lowest) => {  // 0 for what is no setting: an address may say anything
    const value = Math.round(Number(values[`tune-${name}`]));
    return value >= lowest && value <= MOST ? value : 0;
  };
  const off = given("off", 1) || Math.max(Math.round(traffic.timeout / 100), 1);
  const best = recommendedOf(family, traffic, off), usual = defaultOf(family);
  const tick = family.tick && given("tick", 1) || best[0];
  const own = [tick, family.slots && given("slots", 2) || slotsOf(family, traffic, tick)];
  const form = document.getElementById("tune");
  form["tune-family"].value = family.name;
  form["tune-off"].value = duration(off, 6);
  for (const [i, part] of ["tick", "slots"].entries()) {
    const input = form[`tune-${part}`], label = input.closest("label");
    label.hidden = !family[part];
    label.firstElementChild.textContent = `${family[part]?.name ?? part}${part === "tick" ? " [ms]" : ""}`;
    input.value = part === "tick" ? own[i] : grouped(own[i]);
    input.removeAttribute("aria-invalid");
  }
  form.querySelector("[data-of=tune-off]").hidden = !family.tick;
  const columns = { "this setting": own, recommended: best, "library's default": usual };
  const rows = Object.values(columns).map((setting) => tunedRows(family, data.callers[values.caller], traffic, setting));
  document.getElementById("tuned").replaceChildren(
    element("thead", element("tr", [element("th", family.title, { scope: "col" }), ...Object.keys(columns).map((name) => element("th", name, { scope: "col", class: "number" }))])),
    element("tbody", Object.keys(rows[0]).map((name) => element("tr", [element("th", name, { scope: "row" }), ...rows.map((row) => element("td", row[name], { class: "number" }))]))),
  );
  document.getElementById("tuned-code").textContent = family.code.replace("{tick}", own[0]).replace("{slots}", own[1]);
  document.getElementById("tuned-basis").textContent = `For ${counted(pendingOf(traffic))} pending timers. Recommended is the longest tick that is off by at most ${duration(off)}, and as many slots as the longest timeout needs, ${duration(longestOf(traffic))}: then no timer is ${family.kind === "levels" ? "moved" : "looked at"} before it is due. ${basisOf(family, own)}`;
}

/** Let the reader tune; `settings` keeps what is set, for the address. */
function startTuning(settings) {
  const form = document.getElementById("tune");
  if (!form) return;
  const text = (name, label) => element("label", [element("span", label), element("input", "", { name, type: "text", autocomplete: "off", spellcheck: "false" })], { "data-of": name });
  form.append(
    element("label", ["Timer", element("select", Object.values(FAMILIES).map(({ name, title }) => element("option", title, { value: name })), { name: "tune-family" })], { "data-of": "tune-family" }),
    text("tune-off", "May be off by"), text("tune-tick", "tick"), text("tune-slots", "slots"),
  );
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("change", ({ target }) => {
    const parse = target.name === "tune-off" || target.name === "tune-tick" ? millisecondsOf : numberOf;
    const value = target.name === "tune-family" ? target.value : parse(target.value);
    const lowest = target.name === "tune-slots" ? 2 : 1;
    if (typeof value === "number" && !(value >= lowest && value <= MOST)) return target.setAttribute("aria-invalid", "true");
    const power = { "tune-tick": "tick", "tune-slots": "slots" }[target.name];
    const family = FAMILIES[form["tune-family"].value];
    const rounded = typeof value !== "number" ? value : power && family[power]?.powers ? 2 ** Math.ceil(Math.log2(value)) : Math.round(value);
    if (target.name === "tune-family" || target.name === "tune-off") settings.forget("tune-tick", "tune-slots");
    settings.set(target.name, rounded);
  });
}
