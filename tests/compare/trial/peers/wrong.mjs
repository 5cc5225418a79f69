// Timers in JavaScript that are right, or wrong in one way: node wrong.mjs FAULT describe | check | time.
import { main } from "../../../../compare/trial/peers/peer.mjs";

class Right {
  constructor(start) {
    this.now = start;
    this.timers = [];
  }

  dueAt(deadline) {
    return Math.max(deadline, this.now);
  }

  start(operation, deadline) {
    const timer = { operation, deadline, due: this.dueAt(deadline) };
    this.timers.push(timer);
    return timer;
  }

  cancel(timer) {
    this.timers.splice(this.timers.indexOf(timer), 1);
  }

  sort(due) {
    return due.sort((a, b) => a.due - b.due || a.operation - b.operation);
  }

  advance(now, fire) {
    this.now = now;
    const due = this.timers.filter((timer) => timer.due <= now);
    this.timers = this.timers.filter((timer) => timer.due > now);
    for (const timer of this.sort(due)) fire(timer.operation, timer.due);
  }

  nextWakeup() {
    return Math.min(...this.timers.map((timer) => timer.due));
  }
}

const FAULTS = {
  right: Right,
  // sort() without a comparison compares texts: 10 comes before 9.
  sortstexts: class extends Right {
    sort(due) {
      return due.sort((a, b) => (String(a.due) < String(b.due) ? -1 : String(a.due) > String(b.due) ? 1 : a.operation - b.operation));
    }
  },
  // setTimeout takes a delay above 2^31 - 1 for 1.
  clamps: class extends Right {
    dueAt(deadline) {
      return super.dueAt(deadline - this.now >= 2 ** 31 ? this.now + 1 : deadline);
    }
  },
  // `deadline | 0` is a 32-bit integer.
  bitwise: class extends Right {
    dueAt(deadline) {
      return Math.max(this.now + ((deadline - this.now) | 0), this.now);
    }
  },
  // A Map from deadline to timer holds one of them.
  map: class extends Right {
    start(operation, deadline) {
      this.timers = this.timers.filter((timer) => timer.deadline !== deadline);
      return super.start(operation, deadline);
    }
  },
  // splice(-1, 1) removes the last timer when none is found: a cancel after an id was used again.
  splices: class extends Right {
    cancel(timer) {
      this.timers.splice(this.timers.findIndex((each) => each.deadline === timer.deadline), 1);
    }
  },
  // A timer removed from an array while it is walked hides the next one.
  skips: class extends Right {
    advance(now, fire) {
      this.now = now;
      this.sort(this.timers);
      for (let k = 0; k < this.timers.length; k++) {
        if (this.timers[k].due <= now) {
          const [timer] = this.timers.splice(k, 1);
          fire(timer.operation, timer.due);
        }
      }
    }
  },
  // A deadline of 0 is false, and counts as none.
  falsy: class extends Right {
    dueAt(deadline) {
      return super.dueAt(deadline || this.now + 1);
    }
  },
  // A re-arm of a pending timer is ignored.
  keeps: class extends Right {
    rearm(timer) {
      return timer;
    }
  },
  // Equal deadlines come last in first out, though declared FIFO.
  lifo: class extends Right {
    sort(due) {
      return due.sort((a, b) => a.due - b.due || b.operation - a.operation);
    }
  },
  // Rounds up to a tick of 10, and does not say so.
  rounds: class extends Right {
    dueAt(deadline) {
      return Math.ceil(super.dueAt(deadline) / 10) * 10;
    }
  },
};

const [fault, ...words] = process.argv.slice(2);
const description = {
  protocol: 1, name: `wrong-${fault}`, language: "JavaScript", scheme: "array", order: "fifo",
  limits: { time: Number.MAX_SAFE_INTEGER, equal: 20000 },
};
main(description, (start) => new FAULTS[fault](start), words);
