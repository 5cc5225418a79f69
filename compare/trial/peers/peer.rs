// The part that all peers written in Rust share: arguments, tapes, clocks and JSON (docs/peers.md).
use std::{fs, process::exit, time::Instant};

const CANCEL: u8 = 1;
const REARM: u8 = 2;

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
    if data.len() < 64 || &data[..8] != b"WHLTAPE\0" {
        return Err(format!("{path} is not a tape"));
    }
    if number(8) != 1 {
        return Err(format!("{path} is a tape of version {}; this peer reads 1", number(8)));
    }
    let (n, phases) = (number(24) as usize, number(48) as usize);
    let (time, up) = (64 + 8 * phases, |at: usize| at.div_ceil(8) * 8);
    let op = time + 8 * n;
    let id = up(op + n);
    let deadline = up(id + 4 * n);
    if data.len() < deadline + 8 * n {
        return Err(format!("{path} is cut short"));
    }
    let numbers = |from: usize, count: usize| (0..count).map(|k| number(from + 8 * k)).collect();
    Ok(Tape {
        id_space: number(32) as usize,
        first_time: number(40),
        first: numbers(64, phases),
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
            let (id, op, deadline) = (tape.id[k] as usize, tape.op[k], tape.deadline[k]);
            let former = self.handles[id].take().filter(|_| op != 0);
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
        let (mut counts, mut k) = (vec![0; 496], from);
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
            let wall = wall.elapsed().as_nanos();
            if drains && memory < 0 {
                memory = (resident("VmHWM:") - before).max(0);
            }
            if round >= 0 {
                println!(
                    "{{\"round\": {round}, \"phase\": {phase}, \"operations\": {}, \"expired\": {}, \
                     \"wall_ns\": {wall}, \"thread_ns\": {thread}, \"process_ns\": {process}, \
                     \"memory_bytes\": {memory}{histogram}}}",
                    to - from,
                    run.rows.len() - expired
                );
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
            time::<S>(&tape, option("--rounds", 7), option("--warm-up", 5), option("--histogram", 0) > 0);
        }),
        _ => Err("usage: describe | check TAPE OUT | time TAPE".to_string()),
    };
    if let Err(problem) = done {
        eprintln!("{name}: {problem}");
        exit(2);
    }
}
