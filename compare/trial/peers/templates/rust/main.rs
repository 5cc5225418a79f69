// An adapter for a timer in Rust. Put your timer in the place of the vector, and call it in these functions.
mod peer;

struct Naive {
    timers: Vec<(i64, i64)>, // deadline and operation, sorted
}

impl peer::Structure for Naive {
    type Handle = (i64, i64); // of a timer that is pending

    fn new(_start: i64) -> Self {
        Naive { timers: Vec::new() } // empty; the clock is at the argument
    }

    fn start(&mut self, operation: i64, deadline: i64) -> Self::Handle {
        let place = self.timers.partition_point(|other| *other < (deadline, operation));
        self.timers.insert(place, (deadline, operation));
        (deadline, operation)
    }

    fn cancel(&mut self, handle: Self::Handle) {
        let place = self.timers.binary_search(&handle).unwrap();
        self.timers.remove(place);
    }

    // fn rearm(&mut self, handle, operation, deadline), if your timer can re-arm in place.

    fn advance(&mut self, now: i64, fire: &mut impl FnMut(i64, i64)) {
        let due = self.timers.partition_point(|(deadline, _)| *deadline <= now);
        for (deadline, operation) in self.timers.drain(..due) {
            fire(operation, deadline); // when it fires, by your timer
        }
    }

    fn next_wakeup(&mut self) -> i64 {
        self.timers[0].0 // something is pending
    }

    fn pending(&self) -> usize {
        self.timers.len()
    }
}

fn main() {
    // "order": "unspecified" if equal deadlines may come in any order; other members: docs/peers.md.
    peer::main::<Naive>(
        "my-timer",
        r#"{"protocol": 1, "name": "my-timer", "language": "Rust", "scheme": "sorted vector",
            "rounding": {"kind": "exact"}, "order": "fifo"}"#,
    );
}
