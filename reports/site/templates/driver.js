"use strict";
// Drives one of SCHEMES through operations from stop to stop, and counts what it costs. It knows no page.
const START = 0, CANCEL = 1, REARM = 2, ARM = 3;
const MOST_STOPS = 2_000_000;
const NAMED = 6, FOLLOWED = 500; // timers named in a sentence; pending timers whose moves are followed

/** A scheme with chosen parameters: its description, and make(start). */
function schemeOf(name, chosen = {}) {
  let made;
  SCHEMES[name]((description, make) => (made = { description, make }), (key, otherwise) => chosen[key] ?? otherwise);
  return made;
}

class Driver {
  pending = new Map(); // id -> { handle, deadline }
  counts = { wake_ups: 0, idle_wake_ups: 0 };
  fired = { count: 0, late: 0, early: 0 }; // how many, and the greatest lateness and earliness
  moments = []; // at which it stopped
  next = 0; // the operation that follows
  text = "The clock is at 0. Nothing happens.";
  moved = new Map(); // id -> its place before the last stop
  gone = []; // deadlines that fired in the last stop

  /** `operations` are [time, operation, id, deadline], by time. */
  constructor(name, chosen, operations, first = 0) {
    const { description, make } = schemeOf(name, chosen);
    Object.assign(this, { description, operations, now: first, structure: make(first) });
  }

  get work() {
    return { ...this.counts, ...this.structure.counts };
  }

  /** The moment of the next wake-up or operation; undefined if neither follows. */
  get nextStop() {
    const wake = this.pending.size ? Math.max(this.structure.nextWakeup() ?? Infinity, this.now) : Infinity;
    const stop = Math.min(wake, this.operations[this.next]?.[0] ?? Infinity);
    return stop === Infinity ? undefined : stop;
  }

  /** Stop at every moment up to `until`; a RangeError says what this scheme cannot do. */
  run(until) {
    for (let stop; (stop = this.nextStop) !== undefined && stop <= until; ) {
      this.stop(stop);
      if (this.moments.length > MOST_STOPS) throw new RangeError(`the clock would stop more than ${shown(MOST_STOPS)} times`);
    }
    return this;
  }

  /** Go to the next stop, and say in `text` what happens there. */
  step() {
    const stop = this.nextStop, followed = this.pending.size <= FOLLOWED;
    if (stop === undefined) return;
    const from = this.now, before = followed ? this.places() : new Map(), polled = this.structure.queue?.slice() ?? [];
    const sizes = new Map(polled.map((bucket) => [bucket, [bucket.begins, bucket.size]]));
    const done = this.stop(stop), after = followed ? this.places() : new Map();
    this.moved = new Map([...before].filter(([id, place]) => after.has(id) && after.get(id) !== place));
    const sentences = [from === stop ? `The clock is at ${stop}.` : `The clock jumps from ${from} to ${stop}.`];
    for (const bucket of polled.reverse())
      if (sizes.get(bucket)[0] !== bucket.begins)
        sentences.push(`The bucket of ${this.placeOf(bucket)} expires.${sizes.get(bucket)[1] ? "" : " It is empty."}`);
    const groups = new Map();
    for (const [id, place] of this.moved) {
      const way = `from ${place} to ${after.get(id)}`;
      if (!way.includes("index")) groups.set(way, [...(groups.get(way) ?? []), this.pending.get(id).deadline]);
    }
    for (const [way, deadlines] of groups) sentences.push(`${named(deadlines)} ${verb(deadlines, "move")} ${way}.`);
    if (this.gone.length) sentences.push(`${named(this.gone)} ${verb(this.gone, "fire")}.`);
    for (const [action, deadlines] of done)
      sentences.push(`${named(deadlines)} ${deadlines.length > 1 ? "are" : "is"} ${action}.`);
    if (sentences.length === 1) sentences.push("Nothing happens.");
    this.text = sentences.join(" ");
  }

  /** Advance to a moment, then do its operations; return the deadlines of each kind of operation. */
  stop(moment) {
    const { operations, pending, counts } = this, done = new Map(), wakes = pending.size > 0;
    this.gone = [];
    const wake = wakes ? this.structure.nextWakeup() : Infinity;
    this.structure.advance(moment, (operation, at) => this.expire(operations[operation], at));
    this.now = moment;
    this.moments.push(moment);
    if (wake <= moment) {
      counts.wake_ups++;
      if (!this.gone.length) counts.idle_wake_ups++;
    }
    for (; operations[this.next]?.[0] <= moment; this.next++) {
      const [, op, id, deadline] = operations[this.next], held = pending.get(id);
      const action = op === CANCEL ? "cancelled" : held ? "re-armed" : "scheduled";
      const tooLate = !held && (op === CANCEL || op === REARM);
      const named = op === CANCEL ? held?.deadline : deadline;
      const key = tooLate ? `${op === CANCEL ? "cancelled" : "re-armed"} too late` : action;
      done.set(key, [...(done.get(key) ?? []), named ?? "a timer"]);
      if (tooLate) continue;
      if (op === CANCEL) {
        this.structure.cancel(held.handle);
        pending.delete(id);
      } else this.arm(id, held, deadline);
    }
    return done;
  }

  arm(id, held, deadline) {
    const { structure, next, now } = this, most = this.description.limits.delay ?? Infinity;
    if (deadline - now > most) throw new RangeError(`a delay of ${shown(deadline - now)} is too long: it reaches ${shown(most)}`);
    if (held && !structure.rearm) structure.cancel(held.handle);
    const handle = held && structure.rearm ? structure.rearm(held.handle, next, deadline) : structure.start(next, deadline);
    this.pending.set(id, { handle, deadline, armedAt: now });
  }

  expire([, , id, deadline], at) {
    // A structure may fire what was due when it was armed "at" its deadline.
    const { armedAt } = this.pending.get(id), late = Math.max(at, armedAt) - Math.max(deadline, armedAt);
    this.fired.count++;
    this.fired.late = Math.max(this.fired.late, late);
    this.fired.early = Math.max(this.fired.early, -late);
    this.pending.delete(id);
    this.gone.push(deadline);
  }

  /** Where each pending timer is, by id, in words. */
  places() {
    const found = new Map(), idOf = (timer) => this.operations[timer.operation][2];
    for (const [level, { slots }] of (this.structure.levels ?? []).entries())
      for (const [slot, timers] of slots.entries())
        for (const timer of timers) found.set(idOf(timer), this.placeText(level, slot));
    for (const [index, timer] of (this.structure.heap ?? []).entries()) found.set(idOf(timer), `index ${index}`);
    return found;
  }

  placeOf(bucket) {
    return this.placeText(bucket.level, this.structure.levels[bucket.level].slots.indexOf(bucket));
  }

  placeText(level, slot) {
    return this.structure.wheels ? `level ${level + 1}, slot ${slot}` : `slot ${slot}`;
  }
}

const shown = (number) => number.toLocaleString("en");
const verb = (timers, word) => (timers.length > 1 ? word : `${word}s`);
function named(deadlines) {
  if (deadlines.length > NAMED) return `${shown(deadlines.length)} timers`;
  return deadlines.length > 1 ? `${deadlines.slice(0, -1).join(", ")} and ${deadlines.at(-1)}` : `${deadlines[0]}`;
}

// ---- operations: of an example, of the address, of a log, of a tape

const EXAMPLES = {
  walk: [9, 88, 222, 520, 521, 522].map((deadline, id) => [0, START, id, deadline]),
  // Sixty timers with one deadline, which one upper slot holds until they all move at once.
  burst: Array.from({ length: 60 }, (_, id) => [0, START, id, 750]),
};

const CODES = "scta";

/** "s0-9.c5-0": a start at 0 for 9, and a cancel of timer 0 at 5. A re-arm and an arm name the timer, too. */
function written(operations) {
  const one = ([time, op, id, deadline]) => `${CODES[op]}${time}-${id}${op === CANCEL ? "" : `-${deadline}`}`;
  return operations.map(one).join(".");
}

function read(text) {
  return text.split(".").filter(Boolean).map((word) => {
    const numbers = word.slice(1).split("-"), op = CODES.indexOf(word[0]);
    if (op < 0 || numbers.length !== (op === CANCEL ? 2 : 3) || !numbers.every((n) => /^\d{1,15}$/.test(n)))
      throw new RangeError(`${JSON.stringify(word.slice(0, 40))} is not an operation`);
    const [time, id, deadline = 0] = numbers.map(Number);
    return [time, op, id, deadline];
  }).sort((a, b) => a[0] - b[0]);
}

/** The operations of a log with the columns start, duration and timeout, in seconds; a unit is a millisecond. */
function operationsOfLog(text, timeout) {
  const lines = text.trim().split(/\r?\n/).map((line) => line.split(/[,;\t]/).map((cell) => cell.trim()));
  const when = (cell) => (isNaN(Number(cell)) ? Date.parse(cell) / 1000 : Number(cell));
  const head = isNaN(when(lines[0][0])) ? lines.shift().map((name) => name.toLowerCase()) : ["start", "duration", "timeout"];
  const column = (pattern, otherwise) => (head.findIndex((name) => pattern.test(name)) + 1 || otherwise + 1) - 1;
  const start = column(/^(start|time|ts)/, 0), duration = column(/^(dur|sec|lat|took|elapsed)/, 1), own = head.indexOf("timeout");
  const requests = lines.map((cells, k) => {
    const began = when(cells[start] || NaN), took = cells[duration] ? Number(cells[duration]) : Infinity;
    const most = own < 0 || !cells[own] ? timeout : Number(cells[own]);
    if (isNaN(began) || !(took >= 0) || !(most >= 0))
      throw new RangeError(`line ${k + 1} of the log is ${JSON.stringify(cells.join(",").slice(0, 60))}; it needs start, duration, timeout in seconds`);
    return [began, took, most];
  }).sort((a, b) => a[0] - b[0]);
  const operations = [], ms = (seconds) => Math.floor(Math.round((seconds - requests[0][0]) * 1e6) / 1e3);
  for (const [id, [began, took, most]] of requests.entries()) {
    const deadline = ms(began) + Math.round(1000 * most);
    operations.push([ms(began), START, id, deadline]);
    if (ms(began + took) < deadline) operations.push([ms(began + took), CANCEL, id, 0]);
  }
  return operations.sort((a, b) => a[0] - b[0] || a[1] - b[1]);
}

/** The operations of a flat tape, which `wheelwork export` writes; moments count from the first. */
function operationsOfTape(buffer) {
  const view = new DataView(buffer), word = (at) => Number(view.getBigInt64(at, true)), up = (at) => Math.ceil(at / 8) * 8;
  if (buffer.byteLength < 64 || new TextDecoder().decode(new Uint8Array(buffer, 0, 7)) !== "WHLTAPE" || word(8) !== 1)
    throw new RangeError("the file is not a tape of version 1");
  const size = word(24), first = word(40), time = 64 + 8 * word(48);
  const op = time + 8 * size, id = up(op + size), deadline = up(id + 4 * size);
  if (buffer.byteLength < deadline + 8 * size) throw new RangeError("the tape is cut short");
  return Array.from({ length: size }, (_, k) => [
    word(time + 8 * k) - first, view.getInt8(op + k), view.getInt32(id + 4 * k, true), Math.max(word(deadline + 8 * k) - first, 0),
  ]);
}
