// ---- what a second of traffic costs: the model of compare/trial/advice/model.py

// Traffic is { rate, timeout, cancelled, answer, kind, step }: starts per second, and means in ms. The
// traffic of a recorded program has the number pending, too, which was counted.

const { CORE, UNITS, BEYOND, NEAR_SIZE, FLOOR, NINE_OF_TEN, WIDER, TIMEOUTS } = data.model;

const lifeOf = ({ cancelled, answer, timeout }) => cancelled * answer + (1 - cancelled) * timeout;
const pendingOf = (traffic) => traffic.pending ?? traffic.rate * lifeOf(traffic) / 1_000;

/** The timers that are held at the end of a step: at least those that start in it. */
const heldOf = (traffic) => Math.max(pendingOf(traffic), traffic.rate * traffic.step / 1_000);

/** The slots of a second in which at least one of these random events is. */
const met = (events, slots) => slots * -Math.expm1(-events / slots);

/** Those of them that will be cancelled or moved; at least those that start in a step. */
const answeredOf = ({ rate, cancelled, answer, step }) => rate * cancelled * Math.max(answer, step) / 1_000;

/** How many of what each constant stands for the traffic has in a second, in their order. */
function ratesOf(traffic) {
  const { rate, cancelled, kind, step } = traffic;
  const clock = UNITS / step, ends = rate * cancelled, lost = rate * (1 - cancelled);
  const again = kind === "keepalive" || kind === "periodic";  // what ends a timer starts it, too
  const starts = kind === "keepalive" ? lost : rate;
  const steps = met(again ? rate : rate + ends, clock);
  const calls = met(starts, clock) + met(ends, clock);
  const firing = kind === "periodic" ? steps : firingOf(lost, steps, clock);
  return [ends, lost, steps, calls, firing, momentsOf(traffic, lost), UNITS];
}

/** The steps at which something has become due since the last one: gaps are geometric. */
function firingOf(lost, steps, clock) {
  const share = steps / clock, none = Math.exp(-lost / clock);
  const leftOut = 1 - (1 - share) * none;
  return leftOut > 0 ? steps * (1 - share * none / leftOut) : 0;
}

/** The units of time at which timers are due: those that start in a step have few timeouts. */
function momentsOf({ kind, step }, lost) {
  const most = met(lost, UNITS);
  const timeouts = { one: 1, keepalive: 1, few: TIMEOUTS.length }[kind];
  return timeouts ? Math.min(timeouts * met(lost / timeouts, UNITS / step), most) : most;
}

const sizesOf = (bySize) => Object.keys(bySize).map(Number).sort((a, b) => a - b);

/** Whether a timer may be offered; `largest` is the largest size that was measured of any. */
function isKnown(traffic, fits, largest) {
  const own = Math.max(...sizesOf(fits));
  return heldOf(traffic) <= own * (own >= largest ? BEYOND : NEAR_SIZE);
}

/** The sizes whose constants count with so many timers pending; twice the only one. */
function around(pending, fits) {
  const sizes = sizesOf(fits);
  const above = sizes.findIndex((size, i) => i === sizes.length - 1 || (i > 0 && size >= pending));
  return [sizes[Math.max(above - 1, 0)], sizes[above]];
}

/**
 * The constants and their relative error with so many timers pending, from fits at some sizes. `round`
 * takes those of one round of samples alone.
 */
function at(pending, fits, round = null) {
  const [left, right] = around(pending, fits);
  const constantsAt = (size) => round === null ? fits[size].constants : fits[size].rounds[round];
  if (left === right) return { constants: constantsAt(left), error: fits[left].error };
  const share = Math.max(Math.log(Math.max(pending, 1e-9) / left) / Math.log(right / left), 0);
  const part = (pending - left) / (right - left);
  const outside = Math.max(Math.log(Math.max(pending, 1e-9) / right), Math.log(sizesOf(fits)[0] / Math.max(pending, 1)), 0);
  return {
    constants: constantsAt(left).map((low, i) => between(low, constantsAt(right)[i], share, part)),
    error: Math.max(fits[left].error, fits[right].error) + WIDER * outside,
  };
}

/** A constant between two sizes, or beyond the larger; linear where it is 0 at one of them. */
function between(low, high, share, part) {
  if (low > 0 && high > 0) return low * (high / low) ** (share <= 1 || high > low ? share : 1);
  return high > 0 ? high * Math.min(Math.max(part, 0), 1) : low * Math.max(1 - Math.max(part, 0), 0);
}

/** [cost, low, high] in nanoseconds of CPU in a second; 9 of 10 replays are from low to high. */
function costOf(traffic, fits, round = null) {
  const { constants, error } = at(heldOf(traffic), fits, round);
  // The timers that are cancelled are those that have started last, and the others lie still.
  const [pair] = at(answeredOf(traffic), fits, round).constants;
  const middle = ratesOf(traffic).reduce((sum, rate, i) => sum + rate * (i ? constants[i] : pair), 0);
  const factor = Math.exp(NINE_OF_TEN * Math.hypot(error, FLOOR));
  return [middle, middle / factor, middle * factor];
}

/** The cost by the constants of each round of samples alone; of all if there are no rounds. */
function byRound(traffic, fits) {
  const sizes = [heldOf(traffic), answeredOf(traffic)].flatMap((pending) => around(pending, fits));
  const rounds = Math.min(...sizes.map((size) => fits[size].rounds.length));
  return rounds ? Array.from({ length: rounds }, (_, k) => costOf(traffic, fits, k)[0]) : [costOf(traffic, fits)[0]];
}
