// ---- the settings of a case: text fields, sliders, the address, and the traffic that they describe

/**
 * The fields that take any number: what a text means, how it is shown, its bounds, and those of the
 * slider. Times are in ms. The values of settings and address are plain numbers.
 */
const FIELDS = {
  rate: { label: "Timers per second", parse: numberOf, show: (value) => value < 1 ? significant(value, 6) : grouped(Number(value.toPrecision(6))), bounds: [1e-6, 1e9], slider: [1, 1e7], usual: 1_000 },
  timeout: { label: "Mean timeout", parse: millisecondsOf, show: (ms) => duration(ms, 6), bounds: [1, 1e11], slider: [1, 86_400_000], usual: 10_000 },
  share: { label: "Cancelled", parse: shareOf, show: (share) => `${Number((100 * share).toPrecision(8))}${SPACE}%`, bounds: [0, 1], slider: null, usual: 0.9 },
  answer: { label: "after, on average", parse: millisecondsOf, show: (ms) => duration(ms, 6), bounds: [0, 1e11], slider: [1, 86_400_000], usual: 500 },
  pending: { label: "Timers pending", parse: numberOf, show: (value) => grouped(value < 10 ? Number(value.toPrecision(3)) : Math.round(value)), bounds: [1e-6, 1e10], slider: [1, 1e7], usual: 1_450 },
  step: { label: "Clock moves every", parse: millisecondsOf, show: (ms) => duration(ms, 6), bounds: [1, 3_600_000], slider: [1, 1_000], usual: 1 },
};
const FOUND = { pending: "timers pending", rate: "timers per second", life: "mean life" };
const CASE = "#case?";  // in the address, before the settings: a link to send

/** What is wrong with the value of a field; empty if nothing. */
function fault(name, value, text = value) {
  const { label, show, bounds: [low, high] } = FIELDS[name];
  const wanted = name === "share" ? "a share, such as 99.9 %" : ["rate", "pending"].includes(name) ? "a number, such as 300 000" : "a time, such as 30 s, 5 min or 1 h";
  if (!Number.isFinite(value)) return `${label}: enter ${wanted}, not “${text}”.`;
  return value < low || value > high ? `${label}: enter a value from ${show(low)} to ${show(high)}, not ${text}.` : "";
}

/** The traffic of the settings, with the number that follows from the others; or what is wrong. */
function trafficOf(form) {
  if (form.program) return { traffic: form.program, life: 1_000 * form.program.pending / form.program.rate };
  const kind = form.kind;
  const traffic = { kind, rate: Number(form.rate), timeout: Number(form.timeout), cancelled: kind === "periodic" ? 0 : Number(form.share), answer: Number(form.answer), step: Number(form.step) };
  const { cancelled } = traffic, pending = Number(form.pending);
  if (kind === "keepalive" && !cancelled) return { problem: "With keep-alive, some of the timers are kept alive: enter a share above 0." };
  if (kind === "periodic" && form.find !== "life" && traffic.timeout < traffic.step) return { problem: `A timer cannot fire every ${duration(traffic.timeout)} if the clock moves every ${duration(traffic.step)}: the timeout must be at least the step.` };
  let life = lifeOf(traffic);
  if (form.find === "rate") {
    traffic.rate = 1_000 * pending / life;
  } else if (form.find === "life") {
    life = 1_000 * pending / traffic.rate;
    if (cancelled < 1) traffic.timeout = (life - cancelled * traffic.answer) / (1 - cancelled);
    else traffic.answer = life;
  }
  const { rate, timeout, answer } = traffic;
  if (form.find === "life" && cancelled < 1 && timeout <= Math.max(cancelled && answer, 0)) {
    return { problem: `With ${counted(pending)} pending at ${perSecond(rate)}, a timer lives ${duration(life)} on average, and ${percent(cancelled)} of them are to live ${duration(answer)}: enter a shorter time to the ${kind === "keepalive" ? "touch" : "cancel"}.` };
  }
  if (cancelled && answer >= timeout) {
    return { problem: `The time to the ${kind === "keepalive" ? "touch" : "cancel"}, ${duration(answer)}, is not below the timeout of ${duration(timeout)}.` };
  }
  const wrong = fault("rate", rate, FIELDS.rate.show(rate)) || fault("timeout", timeout, duration(timeout));
  return wrong ? { problem: wrong } : { traffic, life };
}

/** The settings as a sentence, for print and for copies. */
function sentence(form) {
  const own = data.cases[form.traffic];
  const precision = data.timers[form.precision];
  const allowed = precision.exact ? "timers fire exactly" : `timers may fire ${precision.fires}`;
  if (own) return `For ${own.name}; ${allowed}.`;
  const { traffic } = trafficOf(form);
  if (!traffic) return "";
  const ended = traffic.kind === "keepalive" ? "kept alive" : "cancelled";
  const answered = traffic.cancelled ? `, ${FIELDS.share.show(traffic.cancelled)} ${ended} after ${duration(traffic.answer)} on average` : "";
  return `For ${data.callers[form.caller].title}; ${data.kinds[traffic.kind]}; ${perSecond(traffic.rate)} with a mean timeout of ${duration(traffic.timeout)}${answered}; ${counted(pendingOf(traffic))} pending; the clock moves every ${duration(traffic.step)}; ${allowed}.`;
}

/** The command that measures the traffic of the settings where this run did not. */
function commandOf(form, { kind, rate, timeout, cancelled, answer, step }) {
  const plain = (ms) => { const [unit, factor] = UNITS_OF_TIME.find(([, factor]) => Number.isInteger(ms / factor)) ?? ["µs", 0.001]; return `${Math.round(ms / factor)}${unit === "µs" ? "us" : unit}`; };
  const ended = cancelled ? ` --cancelled ${Number((100 * cancelled).toPrecision(6))}% --after ${plain(answer)}` : "";
  return `wheelwork advise --rate ${Number(rate.toPrecision(6))} --timeout ${plain(timeout)}${ended} --traffic ${kind} --step ${plain(step)} --caller ${form.caller}`;
}

class Settings {
  /** The controls in `form`; `changed` is called with the settings after each change. */
  constructor(form, changed) {
    Object.assign(this, { form, changed, values: {}, choices: {}, wrong: "" });
    const callers = Object.entries(data.callers);
    this.modelled = callers.length > 0;
    this.#choice("traffic", "Traffic", [...data.cases.map((one, i) => [i, one.name]), ...(this.modelled ? [["", "as set here"]] : [])]);
    if (this.modelled) {
      this.#choice("caller", "Called by", callers.map(([name, { title, meaning }]) => [name, title, meaning]));
      this.#choice("kind", "Timeouts", Object.entries(data.kinds).map(([kind, meaning]) => [kind, meaning.split(":")[0], meaning]));
      for (const name of ["rate", "timeout", "share", "answer", "pending"]) this.#field(name);
      this.#choice("find", "What follows", Object.entries(FOUND));
      this.#field("step");
    }
    this.#choice("precision", "Precision", data.precisions.map((number) => [number, data.timers[number].fires]));
    form.append(element("p", "", { id: "meaning", class: "note" }));
    for (const [name, { usual }] of Object.entries(FIELDS)) this.values[name] = usual;
    for (const [name, select] of Object.entries(this.choices)) this.values[name] = select.value;
    form.addEventListener("submit", (event) => event.preventDefault());
    form.addEventListener("change", (event) => this.#typed(event.target));
    form.addEventListener("input", (event) => { if (event.target.type === "range") this.#typed(event.target); });
    addEventListener("hashchange", () => { this.restore(); this.#answer(); });
  }

  #choice(name, label, options) {
    if (!options.length) return;
    this.choices[name] = element("select", options.map(([value, text, title]) => element("option", text, title ? { value, title } : { value })), { name });
    this.form.append(element("label", [label, this.choices[name]], { "data-of": name }));
  }

  #field(name) {
    const { label, slider } = FIELDS[name];
    const attributes = { name, type: "text", inputmode: name === "share" || name === "rate" || name === "pending" ? "decimal" : "text", autocomplete: "off", spellcheck: "false" };
    const range = { type: "range", "data-slides": name, "aria-label": `${label}, slider`, min: 0, max: slider ? 1_000 : 100, step: slider ? "any" : 1 };
    this.form.append(element("label", [element("span", label), element("input", "", attributes), element("input", "", range)], { "data-of": name }));
  }

  /** Take over what the reader has typed, chosen or slid. */
  #typed(target) {
    const name = target.dataset.slides ?? target.name;
    this.wrong = "";
    if (target.dataset.slides) {
      this.values[name] = slid(name, Number(target.value));
    } else if (name in FIELDS) {
      const value = FIELDS[name].parse(target.value);
      this.wrong = fault(name, value, target.value);
      if (this.wrong) {
        target.setAttribute("aria-invalid", "true");
        return this.changed(this.values, this.wrong);
      }
      this.values[name] = value;
    } else {
      this.values[name] = target.value;
    }
    // What is typed is given, so something else follows from it.
    if (name === "pending" && this.values.find === "pending") this.values.find = "rate";
    if (name === "rate" && this.values.find === "rate") this.values.find = "pending";
    if (name === "timeout" && this.values.find === "life") this.values.find = "pending";
    if (name === "timeout" && this.values.answer >= this.values.timeout) this.values.answer = 0.05 * this.values.timeout;
    if (name === "kind" && this.values.kind === "keepalive" && !Number(this.values.share)) this.values.share = FIELDS.share.usual;
    this.#changedBy();
  }

  /** A setting of another panel. */
  set(name, value) {
    this.values[name] = String(value);
    this.#changedBy();
  }

  forget(...names) {
    for (const name of names) delete this.values[name];
  }

  #changedBy() {
    const plain = Object.entries(this.values).map(([name, value]) => [name, name in FIELDS ? Number(Number(value).toPrecision(9)) : value]);
    history.replaceState(null, "", CASE + new URLSearchParams(plain));
    this.#answer();
  }

  /** Take over the settings of the address. A value that this page does not offer changes nothing. */
  restore() {
    if (!location.hash.startsWith(CASE)) return;
    this.wrong = "";
    this.forget(...Object.keys(this.values).filter((name) => name.startsWith("tune-")));
    for (const [name, text] of new URLSearchParams(location.hash.slice(CASE.length))) {
      if (name in FIELDS) {
        if (text.trim() && !fault(name, Number(text))) this.values[name] = Number(text);
      } else if (name in this.choices) {
        if ([...this.choices[name].options].some((option) => option.value === text)) this.values[name] = text;
      } else if (name.startsWith("tune-")) {
        this.values[name] = text;
      }
    }
  }

  /** Show the settings in the controls, and only the controls that apply. */
  #follow() {
    const { values, choices, form } = this;
    for (const [name, select] of Object.entries(choices)) select.value = values[name];
    const own = data.cases[values.traffic], { traffic, life } = own || !this.modelled ? {} : trafficOf(values);
    if (traffic) Object.assign(values, { rate: traffic.rate, timeout: traffic.timeout, answer: traffic.answer, pending: pendingOf(traffic) });
    const periodic = values.kind === "periodic";
    const hidden = { share: periodic, answer: periodic || !Number(values.share) };
    for (const label of form.querySelectorAll("[data-of]")) {
      const name = label.dataset.of;
      label.hidden = own ? !["traffic", "precision"].includes(name) : Boolean(hidden[name]);
      if (!(name in FIELDS)) continue;
      const [text, range] = label.querySelectorAll("input");
      text.value = FIELDS[name].show(Number(values[name]));
      text.removeAttribute("aria-invalid");
      range.value = sliderOf(name, Number(values[name]));
      label.classList.toggle("follows", name === followed(values));
    }
    if (!this.modelled) return;
    const kept = values.kind === "keepalive";
    form.querySelector("[data-of=share] span").textContent = kept ? "Kept alive" : FIELDS.share.label;
    const explained = own ? "" : [data.callers[values.caller].meaning, life === undefined ? "" : `A timer lives ${duration(life)} on average.`];
    document.getElementById("meaning").textContent = [explained].flat().filter(Boolean).join(" ");
  }

  #answer() {
    this.#follow();
    this.changed(this.values, this.wrong);
  }

  /** Show the first answer: of the address, of the reader's own traffic, or of a usual case. */
  start() {
    const { values, modelled } = this;
    values.traffic = modelled && !data.cases[0]?.own ? "" : "0";
    const answered = (changes) => verdict({ ...values, ...changes }).chosen;
    const first = data.precisions.find((precision) => answered({ precision }));
    values.precision = String(first ?? data.precisions[0]);
    if (first === undefined && modelled && values.traffic === "") {
      const cases = Object.entries(data.callers).flatMap(([caller, { fits }]) => Object.keys(fits).map((kind) => ({ caller, kind })));
      const each = cases.flatMap((one) => data.precisions.map((precision) => ({ ...one, precision: String(precision) })));
      Object.assign(values, each.find(answered));
    }
    this.restore();
    this.#answer();
  }
}

/** The field that follows from the others. */
const followed = ({ find, share }) => find === "life" ? (Number(share) < 1 ? "timeout" : "answer") : find;

/** The value of a field for a place of its slider; and the other way round. */
function slid(name, place) {
  const { slider } = FIELDS[name];
  if (!slider) return place / 100;
  const [low, high] = slider;
  return Number((low * (high / low) ** (place / 1_000)).toPrecision(2));
}

function sliderOf(name, value) {
  const { slider } = FIELDS[name];
  if (!slider) return 100 * value;
  const [low, high] = slider;
  return 1_000 * Math.log(Math.min(Math.max(value, low), high) / low) / Math.log(high / low);
}
