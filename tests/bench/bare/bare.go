// container/heap without an adapter: with N timers pending, cancel one and start another; a step of the
// clock for every 100 pairs. Prints the CPU time of a pair in ns.
package main

import (
	"container/heap"
	"fmt"
	"math/rand"
	"os"
	"strconv"
	"syscall"
	"unsafe"
)

type timer struct {
	deadline, number int64
	id               int32
	position         int
}

type timers []*timer

func (h timers) Len() int { return len(h) }

func (h timers) Less(i, j int) bool {
	if h[i].deadline != h[j].deadline {
		return h[i].deadline < h[j].deadline
	}
	return h[i].number < h[j].number
}

func (h timers) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].position, h[j].position = i, j
}

func (h *timers) Push(x any) {
	x.(*timer).position = len(*h)
	*h = append(*h, x.(*timer))
}

func (h *timers) Pop() any {
	last := len(*h) - 1
	popped := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	return popped
}

func cpu() int64 {
	var time syscall.Timespec
	syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, 2, uintptr(unsafe.Pointer(&time)), 0)
	return time.Nano()
}

func round(n, pairs int) float64 {
	random := rand.New(rand.NewSource(int64(n)))
	queue, pending := &timers{}, make([]*timer, n)
	victims, delays := make([]int32, pairs), make([]int64, pairs)
	for k := range victims {
		victims[k], delays[k] = int32(random.Intn(n)), 1+random.Int63n(60_000)
	}
	now, number := int64(0), int64(0)
	start := func(id int32, deadline int64) {
		started := &timer{deadline: deadline, number: number, id: id}
		number++
		heap.Push(queue, started)
		pending[id] = started
	}
	advance := func(moment int64) {
		now = moment
		for len(*queue) > 0 && (*queue)[0].deadline <= now {
			pending[heap.Pop(queue).(*timer).id] = nil
		}
	}
	for id := range n {
		start(int32(id), 1+random.Int63n(60_000))
	}
	advance(200)
	began := cpu()
	for pair, id := range victims {
		if pair%100 == 0 {
			advance(200 + int64(pair)/100)
		}
		if pending[id] != nil {
			heap.Remove(queue, pending[id].position)
		}
		start(id, now+delays[pair])
	}
	return float64(cpu()-began) / float64(pairs)
}

func main() {
	n, _ := strconv.Atoi(os.Args[1])
	pairs, _ := strconv.Atoi(os.Args[2])
	warmUp, _ := strconv.Atoi(os.Args[3])
	ns := 0.0
	for range warmUp + 1 {
		ns = round(n, pairs)
	}
	fmt.Println(ns)
}
