// ---- the answer in words and as a table: the costs of the case are added up, ranked and explained

/** Bytes of a timer with this capacity: a fixed part, and as much for each timer. */
function memoryOf(timer, capacity) {
  const sizes = sizesOf(timer.memory);
  if (!sizes.length) return null;
  const [first, last] = [sizes[0], sizes.at(-1)];
  const [small, large] = [first * timer.memory[first], last * timer.memory[last]];
  return first === last ? capacity * timer.memory[first] : small + (large - small) * (capacity - first) / (last - first);
}

/** The case that the settings describe, with an offer for each timer; or a problem. */
function caseOf(form) {
  const own = data.cases[form.traffic];
  if (own) {
    // Without a rate, costs are those of an operation, and only the noise makes them equal.
    const offers = Object.entries(own.costs).map(([number, each]) => offerOf(number, each.map((ns) => ns * (own.rate || 1)), own.pending, null));
    return { own, rate: own.rate, pending: own.pending, capacity: Math.max(own.pending, 1), offers, unknown: [], without: "" };
  }
  const { traffic, life, problem } = trafficOf(form);
  if (problem) return { problem, offers: [] };
  const caller = data.callers[form.caller], pending = pendingOf(traffic), capacity = Math.max(Math.ceil(pending), 1);
  const fits = caller.fits[traffic.kind];
  if (!fits) return { traffic, life, rate: traffic.rate, pending, capacity, offers: [], unmeasured: true };
  const largest = Math.max(...Object.values(fits).flatMap(sizesOf)), smallest = Math.min(...Object.values(fits).flatMap(sizesOf));
  const known = ([, each]) => isKnown(traffic, each, largest);
  const others = Object.entries(fits).filter((entry) => !known(entry)).map(([number]) => Number(number));
  return {
    traffic, life, rate: traffic.rate, pending, capacity, largest, smallest, rough: caller.rough,
    offers: Object.entries(fits).filter(known).map(([number, each]) => offerOf(number, costOf(traffic, each), capacity, caller.host, byRound(traffic, each))),
    unknown: others.filter((number) => number !== caller.host).map((number) => data.timers[number].name),
    without: others.includes(caller.host) ? data.timers[caller.host].name : "",  // the program's own timers
  };
}

/** What a timer costs and what it is. The noise of a modelled cost is that of its rounds of samples. */
function offerOf(number, cost, capacity, host, rounds = null) {
  const timer = data.timers[number];
  // One round tells no noise.
  const noise = rounds?.length > 1 ? [Math.min(...rounds), Math.max(...rounds)] : cost.slice(1);
  return { number: Number(number), timer, cost, noise, rounds, memory: memoryOf(timer, Math.max(capacity, 1)), host: Number(number) === host };
}

/** One cost beside another, in words. */
const compared = (ratio) => ratio >= 2 ? `${significant(ratio)} times as much` : ratio >= 1.005 ? `${significant(100 * ratio - 100, 2)}${SPACE}% more` : ratio <= 0.995 ? `${significant(100 - 100 * ratio, 2)}${SPACE}% less` : "as much";

/** What a program that was recorded on an event loop is told: the answer for its caller. */
function programOf(form, { caller, traffic }) {
  const host = data.timers[data.callers[caller]?.host];
  const { chosen, decided, said } = host ? verdict({ ...form, traffic: "", caller, program: traffic }) : {};
  if (!chosen) return "";
  const use = !decided ? "not decided on this machine now" : chosen.host ? `keep ${host.name}` : `use ${chosen.timer.code.length ? "wheel_event_loop with " : ""}${chosen.timer.name}`;
  return `${data.cases[form.traffic].name} is of a program on ${host.name}: ${use}. ${said.slice(0, chosen.host && decided ? 1 : 2).join(" ")}`;
}

/** Why a program keeps the timers of its host. */
function kept(host, cheapest) {
  if (host === cheapest) return "No timer of this run is cheaper.";
  const saved = host.cost[0] - cheapest.cost[0];
  const small = saved <= data.enough.host * CORE;
  return `${cheapest.timer.name} would save ${percent(saved / CORE)} of a core, ${small ? `which is less than ${percent(data.enough.host)} of a core` : "which is less than the noise"}.`;
}

/** Why there is no answer, and what to do. */
function unanswered(form, { traffic, pending, largest, offers, unmeasured }) {
  const caller = data.callers[form.caller];
  if (unmeasured) {
    const kinds = Object.keys(caller.fits).map((kind) => data.kinds[kind]);
    const told = data.advised.includes(form.caller) ? " “wheelwork report --all-delays” measures the other kinds. To measure this case alone:" : "";
    return `For ${caller.title}, this run measured only ${listed(kinds.map((kind) => kind.split(":")[0]))}.${told}`;
  }
  if (traffic && !offers.length) return `${counted(pending)} timers would be pending. This caller was measured with up to ${grouped(largest)}. Choose a lower rate or a shorter timeout.`;
  return "No timer in this run that is precise enough was measured in this case. Allow less precision.";
}

/** The chosen timer, the ranking, and what is said about them. */
function verdict(form) {
  const found = caseOf(form);
  if (found.problem) return { ...found, ranking: [], said: [found.problem] };
  const { own, offers, rate } = found;
  const limit = data.timers[form.precision];
  const where = own ? `${own.own ? "Your traffic" : "The workload"} ${own.name}${own.together ? ` (${own.together})` : ""}` : "";
  // A program may keep what it has, however precise that is.
  const ranking = offers.filter((offer) => offer.host || precise(offer.timer, limit)).sort((a, b) => a.cost[0] - b.cost[0]);
  if (!ranking.length) {
    const command = found.unmeasured && data.advised.includes(form.caller) ? commandOf(form, found.traffic) : "";
    return { ...found, ranking, command, said: [`${where ? `${where}: ` : ""}${unanswered(form, found)}`] };
  }
  const rated = rate > 0, enough = data.enough[own ? "replayed" : "modelled"];
  const { chosen, cheapest, near, reasons } = choose(ranking, rated ? enough * CORE : 0);
  if (rated && chosen.cost[0] > CORE) {
    const highest = rate * CORE / cheapest.cost[0];
    return { ...found, where, ranking, rated, said: [`Not possible with one core here: ${chosen.timer.name} would take ${percent(chosen.cost[0] / CORE)} of a core. The highest rate is about ${grouped(Number(highest.toPrecision(2)))} ${own ? "operations" : "timers"} per second, with ${cheapest.timer.name}.`] };
  }
  const rivals = own ? [chosen] : rivalsOf(ranking, chosen);
  const decided = own || isDecided(rivals, chosen, (chosen.host ? data.enough.host : enough) * CORE);
  const said = chosen.host ? [kept(chosen, cheapest)] : [];
  if (!decided) said.push(`Samples of the same replay differ so much that ${chosen.timer.name} costs more than ${data.worse} times as much as another in one and not in the next. Run \`${data.command}\` again when the machine is idle.`);
  said.push(`${chosen.timer.name} costs ${spent(found, chosen, rated)}.`);
  const most = Math.max(...ranking.map((offer) => offer.cost[0]));
  if (rated && most <= data.cheap) said.push(`Speed does not matter here: the most expensive of these timers takes ${percent(most / CORE)} of a core.`);
  const today = !chosen.host && ranking.find((offer) => offer.host);
  if (today) said.push(`That is ${percent((today.cost[0] - chosen.cost[0]) / CORE)} of a core less than ${today.timer.name}.`);
  if (reasons.length && !chosen.host) {
    const why = rated ? `the noise, or ${percent(enough)} of a core` : "the noise";
    said.push(`Within ${why}, ${near} timers cost the same. Of these, ${chosen.timer.name} ${listed(reasons)}. The cheapest is ${cheapest.timer.name}: it takes ${compared(cheapest.cost[0] / chosen.cost[0])}.`);
    if (rated && chosen.cost[0] - cheapest.cost[0] > enough * CORE) said.push("Only the noise makes them equal: a run on a quieter machine may decide otherwise.");
  } else if (near > 1 && !chosen.host) {
    const others = ranking.filter((offer) => offer !== chosen && offer.noise[0] <= chosen.noise[1]);
    if (others.length) said.push(`Speed does not separate it from ${listed(others.map((offer) => offer.timer.name))}: their intervals overlap.`);
  }
  const second = chosen === cheapest && ranking.find((offer) => offer !== chosen);
  if (second) said.push(`The next is ${second.timer.name}, which takes ${compared(second.cost[0] / chosen.cost[0])}.`);
  else if (ranking.length === 1) said.push("No other timer in this run that is precise enough was measured in this case.");
  const faster = offers.filter((offer) => !ranking.includes(offer) && offer.noise[1] < cheapest.noise[0]).sort((a, b) => a.cost[0] - b.cost[0])[0];
  if (faster && !(rated && cheapest.cost[0] - faster.cost[0] <= enough * CORE)) said.push(`Less precise but faster: ${faster.timer.name}, ${faster.timer.fires}, takes ${compared(faster.cost[0] / chosen.cost[0])}.`);
  said.push(...doubts(found));
  return { ...found, where, chosen, decided, rivals, ranking, rated, said, inside: own?.program ? programOf(form, own.program) : "" };
}

/** The cost of an offer in words. */
function spent({ own, rate }, { cost: [middle, low, high] }, rated) {
  if (!rated) return `${time(middle)} for each operation`;
  const ends = own ? "" : ` (${significant(100 * low / CORE)} to ${percent(high / CORE)} in 9 of 10 replays)`;
  return `${percent(middle / CORE)} of a core${ends}, ${time(middle / rate)} for each ${own ? "operation" : "timer"}`;
}

/** What was not measured, and where the cost is uncertain. */
function doubts({ own, pending, largest, smallest, rough, unknown, without }) {
  const said = [];
  if (pending > largest) said.push(`Measured with up to ${grouped(largest)} pending: above that the cost is extrapolated, and its interval wider.`);
  else if (pending < smallest) said.push(`Measured with ${grouped(smallest)} pending and more: below that the interval is wider.`);
  if (rough) said.push("The costs of this caller follow from three measured ones, so their intervals are wide.");
  if (without) said.push(`${without} was not measured with so many pending.`);
  if (unknown.length) said.push(`Not measured with so many pending, because it takes longer than the budget: ${listed(unknown)}.`);
  if (own?.missing.length) said.push(`Not timed, because it takes longer than the budget: ${listed(own.missing)}.`);
  return said;
}

/** Where the costs come from. */
function basis({ own, traffic, life, pending, unmeasured }) {
  if (own) return "The cost is the median CPU time of the replay for each operation, expiries included. Memory is that of a timer with room for the most timers that were pending at once.";
  if (!traffic) return "";
  const [ends, lost, steps, , firing] = ratesOf(traffic).map((each) => counted(each));
  const kept = traffic.kind === "keepalive";
  return `${counted(pending)} timers are pending on average: ${perSecond(traffic.rate)}, for ${duration(life)} each. A second has ${ends} ${kept ? "touches" : "cancels"}, ${lost} expiries and ${steps} steps of the clock, ${firing} of which fire a timer.${unmeasured ? "" : " What each of them costs was fitted to replays of such traffic, with fewer and with more timers pending."}`;
}

function show(form, wrong = "") {
  const found = wrong ? { ranking: [], said: [wrong], offers: [] } : verdict(form);
  const shown = document.getElementById("verdict");
  shown.replaceChildren();
  if (found.inside) shown.append(element("p", found.inside, { class: "headline" }));
  if (found.chosen) {
    const { timer } = found.chosen;
    const undecided = found.decided ? [] : [element("p", `Not decided on this machine: ${found.rivals.map((offer) => offer.timer.name).join(" or ")}.`, { class: "headline" })];
    shown.append(
      ...undecided,
      element("p", [!found.decided ? "Of what was measured, the choice is " : found.chosen.host ? "Keep " : found.inside ? "In other code: use " : found.where ? `${found.where}: use ` : "Use ", element("b", timer.name), timer.exact ? ". It fires exactly at the deadline." : `. It fires ${timer.fires}.`], { class: "headline" }),
      ...(timer.code.length ? [element("pre", element("code", timer.code.join(pythonic(found.capacity))))] : []),
    );
  }
  shown.append(element("p", found.said.join(" "), found.chosen ? {} : { class: "headline" }));
  if (found.command) shown.append(element("pre", element("code", found.command)));
  showRanking(found);
  document.getElementById("basis").textContent = wrong ? "" : basis(found);
  document.getElementById("sentence").textContent = wrong ? "" : sentence(form);
}

function showRanking(found) {
  const top = found.ranking.at(-1)?.cost[0], base = (found.chosen ?? found.ranking[0])?.cost[0];
  const columns = [  // heading, class, what an offer has there
    ["timer", "", null],
    ["", "bars", ({ cost: [middle] }) => element("span", "", { class: "cost", style: `width:${Math.max(100 * middle / top, 0.5)}%` })],
    ...(found.rated ? [["of a core", "number", ({ cost: [middle] }) => percent(middle / CORE)]] : []),
    ...(found.rated && !found.own ? [["9 of 10 replays", "number", ({ cost: [, low, high] }) => `${significant(100 * low / CORE)}–\u2060${percent(high / CORE)}`]] : []),
    [`per ${found.own ? "operation" : "timer"}`, "number", ({ cost: [middle] }) => time(middle / (found.rate || 1))],
    ["relative", "number", ({ cost: [middle] }) => times(middle / base)],
    ["memory", "number", ({ memory }) => memory === null ? "–" : bytes(memory)],
    ["precision", "", ({ timer }) => timer.fires],
  ];
  const rows = found.ranking.map((offer) => {
    const row = element("tr", element("th", offer.timer.name, { scope: "row" }), offer.number === found.chosen?.number ? { class: "chosen" } : {});
    if (offer.timer.code.length) row.dataset.series = offer.number;  // peers are not in the legend
    row.append(...columns.slice(1).map(([, kind, cell]) => element("td", cell(offer), { class: kind })));
    return row;
  });
  const head = element("tr", columns.map(([heading, kind]) => element("th", heading, { scope: "col", class: kind })));
  document.getElementById("ranking").replaceChildren(...(rows.length ? [element("thead", head), element("tbody", rows)] : []));
}

/** The answer that is shown, as Markdown, with where it comes from. */
function markdown() {
  const text = (each) => each.textContent.replaceAll("|", "\\|").trim();
  const table = (id) => {
    const rows = [...document.querySelectorAll(`#${id} tr`)].map((row) => [...row.cells].filter((cell) => !cell.classList.contains("bars")).map(text));
    const lines = rows.map((row) => `| ${row.join(" | ")} |`);
    if (rows.length) lines.splice(1, 0, `|${"---|".repeat(rows[0].length)}`);
    return lines.join("\n");
  };
  const code = document.querySelector("#verdict pre");
  return [
    ...[...document.querySelectorAll("#verdict p")].map(text),
    ...(code ? [`\`\`\`${code.textContent.startsWith("wheelwork") ? "sh" : "python"}\n${code.textContent}\n\`\`\``] : []),
    document.getElementById("sentence").textContent,
    table("ranking"),
    document.getElementById("basis").textContent,
    `${document.getElementById("measured").textContent} By \`${document.getElementById("copy").dataset.command}\`: ${location.href}`,
  ].filter(Boolean).join("\n\n");
}

document.getElementById("copy")?.addEventListener("click", ({ target }) => {
  const told = (text) => { target.textContent = text; };
  navigator.clipboard.writeText(markdown()).then(() => told("Copied"), () => told("The browser does not allow it"));
});
