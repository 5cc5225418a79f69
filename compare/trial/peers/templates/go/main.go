// An adapter for a timer in Go. Put your timer in the place of the slice, and call it in these methods.
package main

import (
	"os"
	"slices"
)

type entry struct {
	Timer // deadline and operation
}

type naive struct {
	timers []*entry // by deadline, and then as they were armed
}

func (n *naive) newTimer() (*entry, *Timer) {
	timer := &entry{}
	return timer, &timer.Timer
}

func (n *naive) add(timer *entry) {
	place, _ := slices.BinarySearchFunc(n.timers, timer.deadline+1, func(other *entry, deadline int64) int {
		if other.deadline < deadline {
			return -1
		}
		return 1
	})
	n.timers = slices.Insert(n.timers, place, timer)
}

// remove gets a timer that is pending. A method rearm(timer *entry) re-arms in place, if yours can.
func (n *naive) remove(timer *entry) {
	place := slices.Index(n.timers, timer)
	n.timers = slices.Delete(n.timers, place, place+1)
}

func (n *naive) advance(now int64, fire func(*entry, int64)) {
	due := 0
	for due < len(n.timers) && n.timers[due].deadline <= now {
		due++
	}
	fired := slices.Clone(n.timers[:due])
	n.timers = slices.Delete(n.timers, 0, due)
	for _, timer := range fired {
		fire(timer, timer.deadline) // when it fires, by your timer
	}
}

// nextWakeup is called when something is pending.
func (n *naive) nextWakeup() int64 { return n.timers[0].deadline }

func main() {
	// "order": "unspecified" if equal deadlines may come in any order; other members: docs/peers.md.
	description := `{"protocol": 1, "name": "my-timer", "language": "Go", "scheme": "sorted slice",
 "rounding": {"kind": "exact"}, "order": "fifo", "limits": {"time": 9223372036854775806}}`
	timer := func(timer *entry) *Timer { return &timer.Timer }
	peerMain("my-timer", description, func(start int64) Structure[entry] { return &naive{} }, timer, os.Args[1:])
}
