// slab-wheel's TimingWheel: four levels of 256 and three times 64 slots, and a map for what lies beyond.
// A unit is a millisecond.
mod peer;

use slab_wheel::{Key, Millis, TimingWheel};
use std::time::{Duration, Instant};

struct Wheel {
    wheel: TimingWheel<i64, Millis>,
    begin: Instant,
    start: i64,
    now: i64,
    fired: Vec<(Key, i64)>,
}

impl Wheel {
    fn instant(&self, moment: i64) -> Instant {
        self.begin + Duration::from_millis((moment - self.start).max(0) as u64)
    }
}

impl peer::Structure for Wheel {
    type Handle = Key;

    fn new(start: i64) -> Self {
        let begin = Instant::now();
        Wheel { wheel: TimingWheel::starting_at(begin), begin, start, now: start, fired: Vec::new() }
    }

    fn start(&mut self, operation: i64, deadline: i64) -> Key {
        self.wheel.insert(self.instant(deadline), operation)
    }

    fn cancel(&mut self, key: Key) {
        self.wheel.remove(key);
    }

    fn advance(&mut self, now: i64, fire: &mut impl FnMut(i64, i64)) {
        self.wheel.advance_to(self.instant(now));
        self.now = now;
        self.wheel.drain_expired_into(&mut self.fired);
        for (_, operation) in self.fired.drain(..) {
            fire(operation, now);
        }
    }

    fn next_wakeup(&mut self) -> i64 {
        let next = self.wheel.next_expiry().unwrap();
        self.start + (next - self.begin).as_nanos().div_ceil(1_000_000) as i64
    }

    fn pending(&self) -> usize {
        self.wheel.len()
    }
}

fn main() {
    peer::main::<Wheel>(
        "rust-slab-wheel",
        r#"{"protocol": 1, "name": "rust-slab-wheel", "language": "Rust", "library": "slab-wheel",
            "version": "0.0.1", "scheme": "hierarchical wheel over a slab", "rearm": "cancel and start",
            "parameters": {"levels": 4, "wheel_size": 256}, "limits": {"delay": 1000000000000, "step": 1000000000000}}"#,
    );
}
