// nexus-timer's Wheel: seven levels of 64 slots, each eight times as coarse. A unit is a millisecond.
mod peer;

use nexus_timer::{TimerHandle, Wheel};
use std::time::{Duration, Instant};

struct Timers {
    wheel: Wheel<usize>, // places in `operations`: a re-arm keeps the value
    handles: Vec<Option<TimerHandle<usize>>>,
    operations: Vec<i64>,
    free: Vec<usize>,
    fired: Vec<usize>,
    begin: Instant,
    start: i64,
    now: i64,
    polled: bool, // since the last timer was armed
}

impl Timers {
    fn instant(&self, moment: i64) -> Instant {
        self.begin + Duration::from_millis((moment - self.start).max(0) as u64)
    }
}

impl peer::Structure for Timers {
    type Handle = usize;

    fn new(start: i64) -> Self {
        let begin = Instant::now();
        Timers {
            wheel: Wheel::unbounded(4096, begin),
            handles: Vec::new(),
            operations: Vec::new(),
            free: Vec::new(),
            fired: Vec::new(),
            begin,
            start,
            now: start,
            polled: false,
        }
    }

    fn start(&mut self, operation: i64, deadline: i64) -> usize {
        let place = self.free.pop().unwrap_or_else(|| {
            self.operations.push(0);
            self.handles.push(None);
            self.operations.len() - 1
        });
        self.operations[place] = operation;
        self.polled = false;
        self.handles[place] = Some(self.wheel.schedule(self.instant(deadline), place));
        place
    }

    fn cancel(&mut self, place: usize) {
        self.wheel.cancel(self.handles[place].take().unwrap());
        self.free.push(place);
    }

    fn rearm(&mut self, place: usize, operation: i64, deadline: i64) -> usize {
        self.operations[place] = operation;
        self.polled = false;
        let handle = self.handles[place].take().unwrap();
        self.handles[place] = Some(self.wheel.reschedule(handle, self.instant(deadline)));
        place
    }

    fn advance(&mut self, now: i64, fire: &mut impl FnMut(i64, i64)) {
        (self.now, self.polled) = (now, true);
        self.wheel.poll(self.instant(now), &mut self.fired);
        for place in self.fired.drain(..) {
            self.wheel.free(self.handles[place].take().unwrap()); // of a timer that has fired
            self.free.push(place);
            fire(self.operations[place], now);
        }
    }

    fn next_wakeup(&mut self) -> i64 {
        let next = self.wheel.next_deadline().unwrap();
        let moment = self.start + next.saturating_duration_since(self.begin).as_nanos().div_ceil(1_000_000) as i64;
        moment.max(self.now + self.polled as i64) // the start of a slot, when nothing of it may be due yet
    }

    fn pending(&self) -> usize {
        self.operations.len() - self.free.len()
    }
}

fn main() {
    peer::main::<Timers>(
        "rust-nexus-timer",
        r#"{"protocol": 1, "name": "rust-nexus-timer", "language": "Rust", "library": "nexus-timer",
            "version": "1.5.0", "scheme": "hierarchical wheel of seven levels", "rearm": "in place",
            "parameters": {"levels": 7, "wheel_size": 64}, "limits": {"delay": 1000000000000, "step": 1000000000000}}"#,
    );
}
