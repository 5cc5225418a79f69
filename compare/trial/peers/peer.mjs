// The part that all peers written in JavaScript share: arguments, tapes, clocks and JSON
// (docs/peers.md).
//
// A structure has these members; it gets handles of pending timers only:
//     start(operation, deadline)            start a timer, and return a handle to it
//     cancel(handle)
//     rearm(handle, operation, deadline)    optional: re-arm a timer, and return its new handle
//     advance(now, fire)                    call fire(operation, firedAt) for what is due, in order
//     nextWakeup()                          when to advance next; something is pending. undefined if
//                                           the structure has nothing any more: a timer is then lost
// Numbers are exact up to 2^53, so describe must have "limits": {"time": 9007199254740991}.
import { readFileSync, writeFileSync } from "node:fs";

// from shared.py: begin
// A tape begins with it and a zero byte.
const MAGIC = "WHLTAPE";
// Of a tape; in bytes.
const VERSION = 1, HEADER = 64, ALIGNMENT = 8;
// Where the int64s of the header are.
const VERSION_AT = 8, OPERATIONS_AT = 24, ID_SPACE_AT = 32, FIRST_TIME_AT = 40, PHASES_AT = 48;
// Operations.
const START = 0, CANCEL = 1, REARM = 2, ARM = 3;
// The bins of a histogram: enough for 2^63 ns.
const BINS = 496;
// Defaults of options.
const ROUNDS = 7, WARM_UP = 5, THREADS_ROUNDS = 1, PRODUCERS = 2;
// What a row of `threads` says.
const REFUSED = 0, DONE = 1, RAN = 2;
// A unit of `threads`; how long it waits for a call, and then for one that is too many.
const UNIT_NS = 1000000, GRACE_MS = 5000, SETTLE_MS = 50;
// The exit code for a bad command or tape.
const BAD_INPUT = 2;
// Problems of a tape, after its path.
const NO_TAPE = "is not a tape", CUT = "is cut short";
// The usage.
const COMMANDS = "describe | check TAPE OUT | time TAPE";
// The members of a line of `time` and `threads`.
const COMMON = "round phase operations expired wall_ns process_ns";
// And those that `threads` may leave out.
const OWN = "thread_ns memory_bytes";
// from shared.py: end

const NONE = -1;

function readTape(path) {
  const file = readFileSync(path);
  const view = new DataView(file.buffer, file.byteOffset, file.length);
  const number = (at) => Number(view.getBigInt64(at, true));
  if (file.length < HEADER || file.toString("latin1", 0, 8) !== `${MAGIC}\0`) throw new Error(`${path} ${NO_TAPE}`);
  const version = number(VERSION_AT);
  if (version !== VERSION)
    throw new Error(`${path} is a tape of version ${version}; this peer reads version ${VERSION}`);
  const size = number(OPERATIONS_AT), phases = number(PHASES_AT), up = (at) => Math.ceil(at / ALIGNMENT) * ALIGNMENT;
  const time = HEADER + 8 * phases, op = time + 8 * size, id = up(op + size), deadline = up(id + 4 * size);
  if (file.length < deadline + 8 * size) throw new Error(`${path} ${CUT}`);
  // Plain arrays, as a program would have them; they hold small integers and larger numbers alike.
  const numbers = (at, count) => Array.from({ length: count }, (_, k) => number(at + 8 * k));
  return {
    size, idSpace: number(ID_SPACE_AT), firstTime: number(FIRST_TIME_AT), first: numbers(HEADER, phases),
    time: numbers(time, size),
    op: Int8Array.from({ length: size }, (_, k) => view.getInt8(op + k)),
    id: Int32Array.from({ length: size }, (_, k) => view.getInt32(id + 4 * k, true)),
    deadline: numbers(deadline, size),
  };
}

class Run {
  constructor(make, tape, rows) {
    this.tape = tape;
    this.structure = make(tape.firstTime);
    this.rows = rows;
    this.now = tape.firstTime;
    this.pending = this.expired = this.before = 0;
    this.mayBeDue = false;
    this.handles = new Array(tape.idSpace).fill(undefined);
    this.armedBy = new Int32Array(tape.idSpace).fill(NONE); // by id; NONE if its timer is not pending
    this.fire = (operation, firedAt) => {
      this.rows?.push(operation, this.before, this.now, firedAt);
      const id = tape.id[operation];
      if (this.armedBy[id] === operation) this.armedBy[id] = NONE;
      this.pending--;
      this.expired++;
    };
  }

  advance(moment, before) {
    this.now = moment;
    this.before = before;
    this.structure.advance(moment, this.fire);
  }

  operations(from, to) {
    const { tape, structure, handles, armedBy } = this;
    for (let k = from; k < to; k++) {
      if (tape.time[k] > this.now || this.mayBeDue) this.advance(tape.time[k], k);
      this.mayBeDue = false;
      const id = tape.id[k], op = tape.op[k], deadline = tape.deadline[k];
      const isPending = op !== START && armedBy[id] !== NONE;
      if (op === CANCEL || (op === REARM && !isPending)) {
        if (isPending) {
          structure.cancel(handles[id]);
          armedBy[id] = NONE;
          this.pending--;
        }
        continue;
      }
      if (isPending && structure.rearm) {
        handles[id] = structure.rearm(handles[id], k, deadline);
      } else {
        if (isPending) structure.cancel(handles[id]);
        handles[id] = structure.start(k, deadline);
      }
      if (!isPending) this.pending++;
      armedBy[id] = k;
      this.mayBeDue = deadline <= this.now;
    }
  }

  advanceOnce() {
    const wakeup = this.structure.nextWakeup();
    if (wakeup === undefined) this.pending = 0;
    else this.advance(Math.max(wakeup, this.now), this.tape.size);
  }

  drain() {
    while (this.pending > 0) this.advanceOnce();
  }

  /** Time each operation, or each advance of the drain, on its own: eight bins in each power of two of ns. */
  singly(from, to, drains) {
    const counts = [];
    for (let k = from; drains ? this.pending > 0 : k < to; k++) {
      const started = process.hrtime.bigint();
      if (drains) this.advanceOnce();
      else this.operations(k, k + 1);
      const ns = Number(process.hrtime.bigint() - started);
      const exponent = ns < 16 ? 0 : Math.floor(Math.log2(ns)) - 3;
      const bin = 8 * exponent + Math.floor(ns / 2 ** exponent);
      counts[bin] = (counts[bin] ?? 0) + 1;
    }
    return Array.from(counts, (count) => count ?? 0);
  }
}

function resident(field) {
  try {
    return 1024 * Number(readFileSync("/proc/self/status", "latin1").match(`${field}:\\s+(\\d+)`)[1]);
  } catch {
    return null;
  }
}

function time(make, tape, { rounds = ROUNDS, "warm-up": warmUp = WARM_UP, histogram = 0 }) {
  const before = resident("VmRSS");
  try {
    writeFileSync("/proc/self/clear_refs", "5");
  } catch {} // the peak since the start of the process counts
  let memory = null;
  const ends = [...tape.first.slice(1), tape.size];
  for (let round = -warmUp; round < rounds; round++) {
    const run = new Run(make, tape, null);
    for (let phase = 0; phase <= tape.first.length; phase++) {
      const drains = phase === tape.first.length;
      const from = drains ? 0 : tape.first[phase], to = drains ? 0 : ends[phase];
      const expired = run.expired, started = process.hrtime.bigint(), cpu = process.cpuUsage();
      let counts;
      if (histogram) counts = run.singly(from, to, drains);
      else if (drains) run.drain();
      else run.operations(from, to);
      const { user, system } = process.cpuUsage(cpu), wall = process.hrtime.bigint() - started;
      if (drains && memory === null && before !== null) memory = Math.max(resident("VmHWM") - before, 0);
      if (round < 0) continue;
      const cpuNs = 1000 * (user + system), threadNs = null; // what the thread took is unknown
      const values = [round, phase, to - from, run.expired - expired, Number(wall), cpuNs, threadNs, memory];
      const line = Object.fromEntries(`${COMMON} ${OWN}`.split(" ").map((name, k) => [name, values[k]]));
      console.log(JSON.stringify({ ...line, histogram: counts }));
    }
  }
}

/** A parameter of the structure: a positive integer of the environment, such as WHEELWORK_TICK. */
export function parameter(name, otherwise) {
  const given = Number(process.env[`WHEELWORK_${name.toUpperCase()}`] ?? otherwise);
  if (Number.isSafeInteger(given) && given > 0) return given;
  console.error(`${name} must be a positive integer, not ${process.env[`WHEELWORK_${name.toUpperCase()}`]}`);
  process.exit(BAD_INPUT);
}

/** Run one of the protocol's commands. `make(start)` makes an empty structure whose clock is at `start`. */
export function main(description, make, words = process.argv.slice(2)) {
  const [command, path, ...rest] = words;
  try {
    if (command === "describe" && words.length === 1) {
      console.log(JSON.stringify(description));
    } else if (command === "check" && words.length === 3) {
      const tape = readTape(path), rows = [], run = new Run(make, tape, rows);
      run.operations(0, tape.size);
      run.drain();
      const bytes = new DataView(new ArrayBuffer(8 * rows.length));
      rows.forEach((value, k) => bytes.setBigInt64(8 * k, BigInt(value), true));
      writeFileSync(rest[0], bytes);
    } else if (command === "time" && words.length >= 2) {
      const given = {};
      for (let k = 0; k + 1 < rest.length; k += 2) given[rest[k].slice(2)] = Number(rest[k + 1]);
      time(make, readTape(path), given);
    } else {
      throw new Error(`usage: ${COMMANDS}`);
    }
  } catch (error) {
    console.error(`${description.name}: ${error.message}`);
    process.exitCode = BAD_INPUT;
  }
}
