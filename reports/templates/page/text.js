// ---- numbers and durations as text, and text as numbers

const NARROW = "\u202f", SPACE = "\u00a0";  // between groups of digits; between a number and its unit

const significant = (value, digits = 3) => Number(value.toPrecision(digits)).toLocaleString("en", { maximumSignificantDigits: digits }).replaceAll(",", NARROW);
const grouped = (number) => number.toLocaleString("en").replaceAll(",", NARROW);
const percent = (share) => `${significant(100 * share)}${SPACE}%`;
const times = (ratio) => `${ratio < 10 ? ratio.toFixed(2) : significant(ratio)}${SPACE}times`;
const listed = (words) => words.length > 1 ? `${words.slice(0, -1).join(", ")} and ${words.at(-1)}` : words.join("");
const pythonic = (number) => number.toLocaleString("en").replaceAll(",", "_");
const counted = (number) => number >= 10 ? grouped(Math.round(number)) : significant(number);

/** A number with the largest of these units, [[factor, unit], ...], that it reaches, or the last. */
function scaled(number, units, digits) {
  const [factor, unit] = units.find(([factor]) => Math.abs(number) >= 0.9995 * factor) ?? units.at(-1);
  return `${significant(number / factor, digits)}${SPACE}${unit}`;
}

const time = (ns) => scaled(ns, [[1e9, "s"], [1e6, "ms"], [1e3, "µs"], [1, "ns"]]);
const bytes = (number) => scaled(number, [[1e9, "GB"], [1e6, "MB"], [1e3, "kB"], [1, "B"]]);
const UNITS_OF_TIME = [["d", 86_400_000], ["h", 3_600_000], ["min", 60_000], ["s", 1_000], ["ms", 1], ["µs", 0.001]];  // in ms
const duration = (ms, digits = 3) => ms === 0 ? `0${SPACE}ms` : scaled(ms, UNITS_OF_TIME.map(([unit, factor]) => [factor, unit]), digits);
const perSecond = (number) => `${number >= 10 ? grouped(Number(number.toPrecision(3))) : significant(number)} per second`;

/** The number that a reader has typed, with groups of digits as they come; NaN if it is none. */
function numberOf(text) {
  const bare = text.trim().replaceAll(/(?<=\d)[\s\u00a0\u202f_'](?=\d)/g, "").replaceAll(/(?<=\d),(?=\d{3}(?!\d))/g, "").replace(",", ".");
  const [, digits, factor] = bare.match(/^(\d*\.?\d+(?:e[+-]?\d+)?)\s*([kM]?)$/) ?? [];
  return digits === undefined ? NaN : Number(digits) * ({ k: 1e3, M: 1e6 }[factor] ?? 1);
}

/** Milliseconds, from a number with a unit of time; without a unit the number is in ms. */
function millisecondsOf(text) {
  const [, number, unit] = text.trim().match(/^(.*?)\s*(d|h|m|min|s|ms|us|µs|μs)?$/);
  const named = { m: "min", us: "µs", "μs": "µs" }[unit] ?? unit ?? "ms";
  return numberOf(number) * Object.fromEntries(UNITS_OF_TIME)[named];
}

/** A share, from a percentage with or without its sign. */
const shareOf = (text) => numberOf(text.trim().replace(/\s*%$/, "")) / 100;

function element(tag, text = "", attributes = {}) {
  const made = document.createElement(tag);
  made.append(...[text].flat());
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  return made;
}
