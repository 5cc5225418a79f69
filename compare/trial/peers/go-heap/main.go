// container/heap of timers that know their positions, so that any of them can be removed.
package main

import (
	"container/heap"
	"os"
	"runtime"
)

type entry struct {
	Timer
	position int
}

type timers []*entry

func (h timers) Len() int { return len(h) }

func (h timers) Less(i, j int) bool {
	if h[i].deadline != h[j].deadline {
		return h[i].deadline < h[j].deadline
	}
	return h[i].operation < h[j].operation
}

func (h timers) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].position, h[j].position = i, j
}

func (h *timers) Push(x any) {
	x.(*entry).position = len(*h)
	*h = append(*h, x.(*entry))
}

func (h *timers) Pop() any {
	last := len(*h) - 1
	popped := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	return popped
}

func (h *timers) newTimer() (*entry, *Timer) {
	timer := &entry{}
	return timer, &timer.Timer
}

func (h *timers) add(timer *entry) { heap.Push(h, timer) }

func (h *timers) remove(timer *entry) { heap.Remove(h, timer.position) }

func (h *timers) rearm(timer *entry) { heap.Fix(h, timer.position) }

func (h *timers) advance(now int64, fire func(*entry, int64)) {
	for len(*h) > 0 && (*h)[0].deadline <= now {
		timer := heap.Pop(h).(*entry)
		fire(timer, timer.deadline)
	}
}

func (h *timers) nextWakeup() int64 { return (*h)[0].deadline }

func main() {
	description := `{"protocol": 1, "name": "go-heap", "language": "Go", "library": "container/heap",
 "version": "` + runtime.Version() + `", "scheme": "binary heap with positions", "order": "fifo",
 "rearm": "in place", "notes": {"memory": "collected; a timer is allocated for each start"}}`
	timer := func(timer *entry) *Timer { return &timer.Timer }
	peerMain("go-heap", description, func(int64) Structure[entry] { return &timers{} }, timer, os.Args[1:])
}
