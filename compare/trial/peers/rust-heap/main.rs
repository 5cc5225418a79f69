// std's BinaryHeap. It cannot remove an entry, so that of a timer that was cancelled or armed again
// stays, a tombstone, until it comes to the top.
mod peer;

use std::{cmp::Reverse, collections::BinaryHeap};

#[derive(Default)]
struct Heap {
    heap: BinaryHeap<Reverse<(i64, i64, usize)>>, // deadline, operation, place
    places: Vec<i64>, // the operation that armed the timer in each place; an entry of another is dead
    free: Vec<usize>,
}

impl Heap {
    fn release(&mut self, place: usize) {
        self.places[place] = -1;
        self.free.push(place);
    }
}

impl peer::Structure for Heap {
    type Handle = usize;

    fn new(_: i64) -> Self {
        Heap::default()
    }

    fn start(&mut self, operation: i64, deadline: i64) -> usize {
        let place = self.free.pop().unwrap_or_else(|| {
            self.places.push(-1);
            self.places.len() - 1
        });
        self.places[place] = operation;
        self.heap.push(Reverse((deadline, operation, place)));
        place
    }

    fn cancel(&mut self, place: usize) {
        self.release(place);
    }

    fn advance(&mut self, now: i64, fire: &mut impl FnMut(i64, i64)) {
        while let Some(&Reverse((deadline, operation, place))) = self.heap.peek() {
            if deadline > now {
                break;
            }
            self.heap.pop();
            if self.places[place] == operation {
                self.release(place);
                fire(operation, deadline);
            }
        }
    }

    fn next_wakeup(&mut self) -> i64 {
        loop {
            let Reverse((deadline, operation, place)) = *self.heap.peek().unwrap();
            if self.places[place] == operation {
                return deadline;
            }
            self.heap.pop();
        }
    }

    fn pending(&self) -> usize {
        self.places.len() - self.free.len()
    }
}

fn main() {
    peer::main::<Heap>(
        "rust-heap",
        r#"{"protocol": 1, "name": "rust-heap", "language": "Rust", "library": "std",
            "scheme": "binary heap with tombstones (BinaryHeap)", "order": "fifo", "rearm": "cancel and start",
            "notes": {"cancel": "leaves a tombstone until its deadline"}}"#,
    );
}
