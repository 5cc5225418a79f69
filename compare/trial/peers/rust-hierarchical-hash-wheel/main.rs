// hierarchical_hash_wheel_timer's cancellable wheel: four levels of 256 slots and an overflow list.
// A unit is a millisecond.
mod peer;

use hierarchical_hash_wheel_timer::wheels::{
    cancellable::{CancellableTimerEntry, QuadWheelWithOverflow},
    Skip,
};
use std::{rc::Rc, time::Duration};

#[derive(Debug)]
struct Entry {
    operation: i64,
}

impl CancellableTimerEntry for Entry {
    type Id = i64;

    fn id(&self) -> &i64 {
        &self.operation
    }
}

struct Wheel {
    wheel: QuadWheelWithOverflow<Entry>,
    now: i64,
    pending: usize,
    due: Vec<i64>, // due when they were armed: the wheel does not take them
}

impl peer::Structure for Wheel {
    type Handle = i64; // the operation

    fn new(start: i64) -> Self {
        Wheel { wheel: QuadWheelWithOverflow::new(), now: start, pending: 0, due: Vec::new() }
    }

    fn start(&mut self, operation: i64, deadline: i64) -> i64 {
        let delay = Duration::from_millis((deadline - self.now).max(0) as u64);
        self.pending += 1;
        if self.wheel.insert_ref_with_delay(Rc::new(Entry { operation }), delay).is_err() {
            self.due.push(operation);
        }
        operation
    }

    fn cancel(&mut self, operation: i64) {
        self.pending -= 1;
        if self.wheel.cancel(&operation).is_err() {
            self.due.retain(|other| *other != operation);
        }
    }

    fn advance(&mut self, now: i64, fire: &mut impl FnMut(i64, i64)) {
        for operation in self.due.drain(..) {
            self.pending -= 1;
            fire(operation, self.now);
        }
        while self.now < now {
            match self.wheel.can_skip() {
                Skip::Empty => self.now = now,
                Skip::Millis(millis) => {
                    let step = (now - self.now).min(millis as i64);
                    self.wheel.skip(step as u32);
                    self.now += step;
                }
                Skip::None => {
                    self.now += 1;
                    for entry in self.wheel.tick() {
                        self.pending -= 1;
                        fire(entry.operation, self.now);
                    }
                }
            }
        }
    }

    fn next_wakeup(&mut self) -> i64 {
        match self.wheel.can_skip() {
            _ if !self.due.is_empty() => self.now,
            Skip::Millis(millis) => self.now + millis as i64, // up to there nothing is due
            _ => self.now + 1,
        }
    }

    fn pending(&self) -> usize {
        self.pending
    }
}

fn main() {
    peer::main::<Wheel>(
        "rust-hierarchical-hash-wheel",
        r#"{"protocol": 1, "name": "rust-hierarchical-hash-wheel", "language": "Rust",
            "library": "hierarchical_hash_wheel_timer", "version": "1.4.0",
            "scheme": "four wheels of 256 slots and an overflow list (QuadWheelWithOverflow)",
            "parameters": {"levels": 4, "wheel_size": 256},
            "limits": {"delay": 4294967294},
            "rearm": "cancel and start", "notes": {"cancel": "by a hash map from id to timer"}}"#,
    );
}
