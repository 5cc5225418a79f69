// The part that all peers written in Rust share: arguments, tapes, clocks and JSON (docs/peers.md).
use std::{fs, process::exit, time::Instant};

mod shared {
    #![allow(dead_code)]
    // from shared.py: begin
    // A tape begins with it and a zero byte.
    pub const MAGIC: &str = "WHLTAPE";
    // Of a tape; in bytes.
    pub const VERSION: i64 = 1;
    pub const HEADER: i64 = 64;
    pub const ALIGNMENT: i64 = 8;
    // Where the int64s of the header are.
    pub const VERSION_AT: i64 = 8;
    pub const OPERATIONS_AT: i64 = 24;
    pub const ID_SPACE_AT: i64 = 32;
    pub const FIRST_TIME_AT: i64 = 40;
    pub const PHASES_AT: i64 = 48;
    // Operations.
    pub const START: i64 = 0;
    pub const CANCEL: i64 = 1;
    pub const REARM: i64 = 2;
    pub const ARM: i64 = 3;
    // The bins of a histogram: enough for 2^63 ns.
    pub const BINS: i64 = 496;
    // Defaults of options.
    pub const ROUNDS: i64 = 7;
    pub const WARM_UP: i64 = 5;
    pub const THREADS_ROUNDS: i64 = 1;
    pub const PRODUCERS: i64 = 2;
    // What a row of `threads` says.
    pub const REFUSED: i64 = 0;
    pub const DONE: i64 = 1;
    pub const RAN: i64 = 2;
    // A unit of `threads`; how long it waits for a call, and then for one that is too many.
    pub const UNIT_NS: i64 = 1000000;
    pub const GRACE_MS: i64 = 5000;
    pub const SETTLE_MS: i64 = 50;
    // The exit code for a bad command or tape.
    pub const BAD_INPUT: i64 = 2;
    // Problems of a tape, after its path.
    pub const NO_TAPE: &str = "is not a tape";
    pub const CUT: &str = "is cut short";
    // The usage.
    pub const COMMANDS: &str = "describe | check TAPE OUT | time TAPE";
    // The members of a line of `time` and `threads`.
    pub const COMMON: &str = "round phase operations expired wall_ns process_ns";
    // And those that `threads` may leave out.
    pub const OWN: &str = "thread_ns memory_bytes";
    // from shared.py: end
}
use shared::*;

/// A timer structure. It gets handles of pending timers only.
pub trait Structure {
    type Handle;
    fn new(start: i64) -> Self;
    fn start(&mut self, operation: i64, deadline: i64) -> Self::Handle;
    fn cancel(&mut self, handle: Self::Handle);
    /// Re-arm a timer. A structure that can do it in place says so here.
    fn rearm(&mut self, handle: Self::Handle, operation: i64, deadline: i64) -> Self::Handle {
        self.cancel(handle);
        self.start(operation, deadline)
    }
    /// Call `fire(operation, fired_at)` for what is due, in order.
    fn advance(&mut self, now: i64, fire: &mut impl FnMut(i64, i64));
    /// When to advance next; something is pending.
    fn next_wakeup(&mut self) -> i64;
    fn pending(&self) -> usize;
}

struct Tape {
    id_space: usize,
    first_time: i64,
    first: Vec<i64>,
    time: Vec<i64>,
    op: Vec<u8>,
    id: Vec<u32>,
    deadline: Vec<i64>,
}

fn read_tape(path: &str) -> Result<Tape, String> {
    let data = fs::read(path).map_err(|error| format!("{path}: {error}"))?;
    let number = |at: usize| i64::from_le_bytes(data[at..at + 8].try_into().unwrap());
    let (header, cell) = (HEADER as usize, |at: i64| number(at as usize));
    if data.len() < header || data[..8] != *format!("{MAGIC}\0").as_bytes() {
        return Err(format!("{path} {NO_TAPE}"));
    }
    if cell(VERSION_AT) != VERSION {
        return Err(format!("{path} is a tape of version {}; this peer reads {VERSION}", cell(VERSION_AT)));
    }
    let (n, phases) = (cell(OPERATIONS_AT) as usize, cell(PHASES_AT) as usize);
    let (time, up) = (header + 8 * phases, |at: usize| at.next_multiple_of(ALIGNMENT as usize));
    let op = time + 8 * n;
    let id = up(op + n);
    let deadline = up(id + 4 * n);
    if data.len() < deadline + 8 * n {
        return Err(format!("{path} {CUT}"));
    }
    let numbers = |from: usize, count: usize| (0..count).map(|k| number(from + 8 * k)).collect();
    Ok(Tape {
        id_space: cell(ID_SPACE_AT) as usize,
        first_time: cell(FIRST_TIME_AT),
        first: numbers(header, phases),
        time: numbers(time, n),
        op: data[op..op + n].to_vec(),
        id: data[id..id + 4 * n].chunks(4).map(|c| u32::from_le_bytes(c.try_into().unwrap())).collect(),
        deadline: numbers(deadline, n),
    })
}

struct Run<'a, S: Structure> {
    tape: &'a Tape,
    structure: S,
    handles: Vec<Option<(i64, S::Handle)>>, // of each id, with the operation that armed it
    rows: &'a mut Vec<[i64; 4]>,
    now: i64,
    may_be_due: bool,
}

impl<'a, S: Structure> Run<'a, S> {
    fn new(tape: &'a Tape, rows: &'a mut Vec<[i64; 4]>) -> Self {
        rows.clear();
        let handles = (0..tape.id_space).map(|_| None).collect();
        Run { tape, structure: S::new(tape.first_time), handles, rows, now: tape.first_time, may_be_due: false }
    }

    fn advance(&mut self, moment: i64, before: usize) {
        let Run { tape, structure, handles, rows, .. } = self;
        structure.advance(moment, &mut |operation, fired_at| {
            rows.push([operation, before as i64, moment, fired_at]);
            let slot = &mut handles[tape.id[operation as usize] as usize];
            if matches!(slot, Some((armed_by, _)) if *armed_by == operation) {
                *slot = None;
            }
        });
        self.now = moment;
    }

    fn operations(&mut self, from: usize, to: usize) {
        let tape = self.tape;
        for k in from..to {
            if tape.time[k] > self.now || self.may_be_due {
                self.advance(tape.time[k], k);
            }
            self.may_be_due = false;
            let (id, op, deadline) = (tape.id[k] as usize, tape.op[k] as i64, tape.deadline[k]);
            let former = self.handles[id].take().filter(|_| op != START);
            let handle = match former {
                Some((_, handle)) if op == CANCEL => {
                    self.structure.cancel(handle);
                    continue;
                }
                None if op == CANCEL || op == REARM => continue,
                Some((_, handle)) => self.structure.rearm(handle, k as i64, deadline),
                None => self.structure.start(k as i64, deadline),
            };
            self.handles[id] = Some((k as i64, handle));
            self.may_be_due = deadline <= self.now;
        }
    }

    fn advance_once(&mut self) {
        let moment = self.structure.next_wakeup().max(self.now);
        self.advance(moment, self.tape.time.len());
    }

    fn drain(&mut self) {
        while self.structure.pending() > 0 {
            self.advance_once();
        }
    }

    /// Time each operation, or each advance of the drain, on its own. The bins are powers of two of
    /// ns, eight in each; the counts end with one that is not 0.
    fn singly(&mut self, from: usize, to: usize, drains: bool) -> Vec<u64> {
        let (mut counts, mut k) = (vec![0; BINS as usize], from);
        while if drains { self.structure.pending() > 0 } else { k < to } {
            let started = Instant::now();
            if drains { self.advance_once() } else { self.operations(k, k + 1) }
            let ns = started.elapsed().as_nanos() as u64;
            let exponent = (64 - ns.leading_zeros()).saturating_sub(4);
            counts[8 * exponent as usize + (ns >> exponent) as usize] += 1;
            k += 1;
        }
        counts.truncate(counts.iter().rposition(|&count| count > 0).map_or(0, |last| last + 1));
        counts
    }
}

#[repr(C)]
struct Timespec {
    seconds: i64,
    nanoseconds: i64,
}

extern "C" {
    fn clock_gettime(clock: i32, time: *mut Timespec) -> i32;
}

fn cpu_ns(clock: i32) -> i64 {
    let mut time = Timespec { seconds: 0, nanoseconds: 0 };
    unsafe { clock_gettime(clock, &mut time) };
    time.seconds * 1_000_000_000 + time.nanoseconds
}

fn resident(field: &str) -> i64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with(field)).unwrap_or("");
    line.split_whitespace().nth(1).map_or(0, |number| 1024 * number.parse::<i64>().unwrap_or(0))
}

fn time<S: Structure>(tape: &Tape, rounds: i64, warm_up: i64, with_histogram: bool) {
    let mut rows = vec![[1; 4]; tape.time.len()]; // written to once, so that its pages exist
    let (before, mut memory) = (resident("VmRSS:"), -1);
    let _ = fs::write("/proc/self/clear_refs", "5");
    for round in -warm_up..rounds {
        let mut run = Run::<S>::new(tape, &mut rows);
        for phase in 0..=tape.first.len() {
            let drains = phase == tape.first.len();
            let from = if drains { 0 } else { tape.first[phase] as usize };
            let to = if drains { 0 } else { tape.first.get(phase + 1).map_or(tape.time.len(), |&k| k as usize) };
            let (expired, wall) = (run.rows.len(), Instant::now());
            let (process, thread) = (cpu_ns(2), cpu_ns(3));
            let mut histogram = String::new();
            match (with_histogram, drains) {
                (true, _) => histogram = format!(", \"histogram\": {:?}", run.singly(from, to, drains)),
                (false, true) => run.drain(),
                (false, false) => run.operations(from, to),
            }
            let (thread, process) = (cpu_ns(3) - thread, cpu_ns(2) - process);
            let wall = wall.elapsed().as_nanos() as i64;
            if drains && memory < 0 {
                memory = (resident("VmHWM:") - before).max(0);
            }
            if round >= 0 {
                let (operations, expired) = ((to - from) as i64, (run.rows.len() - expired) as i64);
                let common = [round, phase as i64, operations, expired, wall, process];
                let names = COMMON.split(' ').chain(OWN.split(' '));
                let own = [thread, memory];
                let values = common.iter().chain(&own);
                let line: Vec<String> = names.zip(values).map(|(name, value)| format!("\"{name}\": {value}")).collect();
                println!("{{{}{histogram}}}", line.join(", "));
            }
        }
    }
}

/// Run one of the protocol's commands.
pub fn main<S: Structure>(name: &str, description: &str) {
    std::panic::set_hook(Box::new(|panic| eprintln!("{panic}"))); // in a few lines
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let option = |name, default| match words.iter().position(|word| *word == name) {
        Some(at) => words[at + 1].parse().unwrap_or(default),
        None => default,
    };
    let done = match words[..] {
        ["describe"] => {
            println!("{description}");
            Ok(())
        }
        ["check", path, out] => read_tape(path).and_then(|tape| {
            let mut rows = Vec::new();
            let mut run = Run::<S>::new(&tape, &mut rows);
            run.operations(0, tape.time.len());
            run.drain();
            let bytes: Vec<u8> = rows.iter().flatten().flat_map(|number| number.to_le_bytes()).collect();
            fs::write(out, bytes).map_err(|error| format!("{out}: {error}"))
        }),
        ["time", path, ..] => read_tape(path).map(|tape| {
            time::<S>(&tape, option("--rounds", ROUNDS), option("--warm-up", WARM_UP), option("--histogram", 0) > 0);
        }),
        _ => Err(format!("usage: {COMMANDS}")),
    };
    if let Err(problem) = done {
        eprintln!("{name}: {problem}");
        exit(BAD_INPUT as i32);
    }
}
