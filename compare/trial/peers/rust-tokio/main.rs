// tokio-util's DelayQueue on tokio's paused clock, which the peer moves. A unit is a millisecond, the
// resolution of tokio's timers. The runtime's own work in moving the clock is part of the times.
mod peer;

use std::{future::poll_fn, task::Poll, time::Duration};
use tokio::{
    runtime::{Builder, Runtime},
    task::unconstrained,
    time::{self, Instant},
};
use tokio_util::time::{delay_queue::Key, DelayQueue};

struct Queue {
    runtime: Runtime,
    queue: DelayQueue<usize>, // places in `operations`: a reset keeps the value
    operations: Vec<i64>,
    free: Vec<usize>,
    begin: Instant,
    start: i64,
    ready: Option<usize>, // taken out while looking for the next wake-up
}

impl Queue {
    fn instant(&self, moment: i64) -> Instant {
        self.begin + Duration::from_millis((moment - self.start).max(0) as u64)
    }
}

impl peer::Structure for Queue {
    type Handle = (Key, usize);

    fn new(start: i64) -> Self {
        let runtime = Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        let (queue, begin) = runtime.block_on(async { (DelayQueue::new(), Instant::now()) });
        Queue { runtime, queue, operations: Vec::new(), free: Vec::new(), begin, start, ready: None }
    }

    fn start(&mut self, operation: i64, deadline: i64) -> (Key, usize) {
        let _inside = self.runtime.enter();
        let place = self.free.pop().unwrap_or_else(|| {
            self.operations.push(0);
            self.operations.len() - 1
        });
        self.operations[place] = operation;
        (self.queue.insert_at(place, self.instant(deadline)), place)
    }

    fn cancel(&mut self, (key, place): (Key, usize)) {
        let _inside = self.runtime.enter();
        self.queue.remove(&key);
        self.free.push(place);
    }

    fn rearm(&mut self, (key, place): (Key, usize), operation: i64, deadline: i64) -> (Key, usize) {
        let _inside = self.runtime.enter();
        self.operations[place] = operation;
        self.queue.reset_at(&key, self.instant(deadline));
        (key, place)
    }

    fn advance(&mut self, now: i64, fire: &mut impl FnMut(i64, i64)) {
        let target = self.instant(now);
        if let Some(place) = self.ready.take() {
            self.free.push(place);
            fire(self.operations[place], now);
        }
        let Queue { runtime, queue, operations, free, begin, start, .. } = self;
        runtime.block_on(async {
            let step = target.saturating_duration_since(Instant::now());
            if !step.is_zero() {
                time::advance(step).await;
            }
            // Without tokio's limit of 128 polls in a row.
            unconstrained(poll_fn(|context| {
                while let Poll::Ready(Some(expired)) = queue.poll_expired(context) {
                    let fired_at = *start + (expired.deadline() - *begin).as_millis() as i64;
                    let place = expired.into_inner();
                    free.push(place);
                    fire(operations[place], fired_at);
                }
                Poll::Ready(())
            }))
            .await
        });
    }

    // Waits for the next timer: a paused clock moves to it by itself.
    fn next_wakeup(&mut self) -> i64 {
        let Queue { runtime, queue, begin, start, ready, .. } = self;
        runtime.block_on(async {
            let next = unconstrained(poll_fn(|context| queue.poll_expired(context))).await;
            *ready = next.map(|expired| expired.into_inner());
            *start + (Instant::now() - *begin).as_millis() as i64
        })
    }

    fn pending(&self) -> usize {
        self.queue.len() + self.ready.is_some() as usize
    }
}

fn main() {
    peer::main::<Queue>(
        "rust-tokio",
        r#"{"protocol": 1, "name": "rust-tokio", "language": "Rust",
            "library": "tokio-util", "version": "0.7.20",
            "scheme": "six wheels of 64 slots (DelayQueue)",
            "parameters": {"levels": 6, "wheel_size": 64}, "limits": {"delay": 30000000000, "step": 30000000000},
            "rearm": "in place", "notes": {"re-arm": "reset_at", "clock": "moving tokio's paused clock is timed too"}}"#,
    );
}
