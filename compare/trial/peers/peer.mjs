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

const CANCEL = 1, REARM = 2, NONE = -1;

function readTape(path) {
  const file = readFileSync(path);
  const view = new DataView(file.buffer, file.byteOffset, file.length);
  const number = (at) => Number(view.getBigInt64(at, true));
  if (file.length < 64 || file.toString("latin1", 0, 8) !== "WHLTAPE\0") throw new Error(`${path} is not a tape`);
  if (number(8) !== 1) throw new Error(`${path} is a tape of version ${number(8)}; this peer reads version 1`);
  const size = number(24), phases = number(48), up = (at) => Math.ceil(at / 8) * 8;
  const time = 64 + 8 * phases, op = time + 8 * size, id = up(op + size), deadline = up(id + 4 * size);
  if (file.length < deadline + 8 * size) throw new Error(`${path} is cut short`);
  // Plain arrays, as a program would have them; they hold small integers and larger numbers alike.
  const numbers = (at, count) => Array.from({ length: count }, (_, k) => number(at + 8 * k));
  return {
    size, idSpace: number(32), firstTime: number(40), first: numbers(64, phases), time: numbers(time, size),
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
      const isPending = op !== 0 && armedBy[id] !== NONE;
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

function time(make, tape, { rounds = 7, "warm-up": warmUp = 5, histogram = 0 }) {
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
      console.log(JSON.stringify({
        round, phase, operations: to - from, expired: run.expired - expired, wall_ns: Number(wall),
        thread_ns: null, process_ns: 1000 * (user + system), memory_bytes: memory, histogram: counts,
      }));
    }
  }
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
      throw new Error("usage: describe | check TAPE OUT | time TAPE");
    }
  } catch (error) {
    console.error(`${description.name}: ${error.message}`);
    process.exitCode = 2;
  }
}
