// The part that all peers written in Go share: arguments, tapes, clocks and JSON (docs/peers.md).
package main

import (
	"encoding/binary"
	"fmt"
	"math/bits"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"
)

const (
	// from shared.py: begin
	// A tape begins with it and a zero byte.
	peerMagic = "WHLTAPE"
	// Of a tape; in bytes.
	peerVersion, peerHeader, peerAlignment = 1, 64, 8
	// Where the int64s of the header are.
	peerVersionAt, peerOperationsAt, peerIdSpaceAt, peerFirstTimeAt, peerPhasesAt = 8, 24, 32, 40, 48
	// Operations.
	peerStart, peerCancel, peerRearm, peerArm = 0, 1, 2, 3
	// The bins of a histogram: enough for 2^63 ns.
	peerBins = 496
	// Defaults of options.
	peerRounds, peerWarmUp, peerThreadsRounds, peerProducers = 7, 5, 1, 2
	// What a row of `threads` says.
	peerRefused, peerDone, peerRan = 0, 1, 2
	// A unit of `threads`; how long it waits for a call, and then for one that is too many.
	peerUnitNs, peerGraceMs, peerSettleMs = 1000000, 5000, 50
	// The exit code for a bad command or tape.
	peerBadInput = 2
	// Problems of a tape, after its path.
	peerNoTape, peerCut = "is not a tape", "is cut short"
	// The usage.
	peerCommands = "describe | check TAPE OUT | time TAPE"
	// The members of a line of `time` and `threads`.
	peerCommon = "{\"round\": %v, \"phase\": %v, \"operations\": %v, \"expired\": %v, \"wall_ns\": %v, \"process_ns\": %v"
	// And those that `threads` may leave out.
	peerOwn = ", \"thread_ns\": %v, \"memory_bytes\": %v"
	// from shared.py: end
)

// Timer is a pending timer; the peer embeds it in its own.
type Timer struct {
	operation, deadline int64
	id                  int32
}

// Structure is a timer structure of pending timers of type *T.
type Structure[T any] interface {
	newTimer() (*T, *Timer)                  // a timer that is not pending
	add(timer *T)                            // by its deadline
	remove(timer *T)                         // a pending timer
	advance(now int64, fire func(*T, int64)) // fire what is due, in order
	nextWakeup() int64                       // when to advance next; something is pending
}

// Rearmer is a structure that can re-arm a timer in place; another one removes it and adds a new one.
type Rearmer[T any] interface {
	rearm(timer *T) // a pending timer, which has its new deadline
}

type tape struct {
	idSpace, firstTime    int64
	first, time, deadline []int64
	op                    []int8
	id                    []int32
}

func fail(name string, problem any) {
	fmt.Fprintf(os.Stderr, "%s: %v\n", name, problem)
	os.Exit(peerBadInput)
}

func readTape(path string) (*tape, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	number := func(at int) int64 { return int64(binary.LittleEndian.Uint64(data[at:])) }
	if len(data) < peerHeader || string(data[:8]) != peerMagic+"\x00" {
		return nil, fmt.Errorf("%s %s", path, peerNoTape)
	}
	if version := number(peerVersionAt); version != peerVersion {
		return nil, fmt.Errorf("%s is a tape of version %d; this peer reads %d", path, version, peerVersion)
	}
	n, phases := int(number(peerOperationsAt)), int(number(peerPhasesAt))
	up := func(at int) int { return (at + peerAlignment - 1) / peerAlignment * peerAlignment }
	times := peerHeader + 8*phases
	ops := times + 8*n
	ids := up(ops + n)
	deadlines := up(ids + 4*n)
	if len(data) < deadlines+8*n {
		return nil, fmt.Errorf("%s %s", path, peerCut)
	}
	t := &tape{idSpace: number(peerIdSpaceAt), firstTime: number(peerFirstTimeAt)}
	for k := range phases {
		t.first = append(t.first, number(peerHeader+8*k))
	}
	for k := range n {
		t.time = append(t.time, number(times+8*k))
		t.op = append(t.op, int8(data[ops+k]))
		t.id = append(t.id, int32(binary.LittleEndian.Uint32(data[ids+4*k:])))
		t.deadline = append(t.deadline, number(deadlines+8*k))
	}
	return t, nil
}

type run[T any] struct {
	tape      *tape
	structure Structure[T]
	timer     func(*T) *Timer
	pending   []*T // of each id
	count     int
	rows      [][4]int64
	now       int64
	mayBeDue  bool
}

func newRun[T any](t *tape, structure Structure[T], timer func(*T) *Timer, rows [][4]int64) *run[T] {
	return &run[T]{tape: t, structure: structure, timer: timer, pending: make([]*T, t.idSpace), rows: rows[:0], now: t.firstTime}
}

func (r *run[T]) advance(moment int64, before int) {
	r.structure.advance(moment, func(fired *T, firedAt int64) {
		timer := r.timer(fired)
		r.rows = append(r.rows, [4]int64{timer.operation, int64(before), moment, firedAt})
		if r.pending[timer.id] == fired {
			r.pending[timer.id] = nil
		}
		r.count--
	})
	r.now = moment
}

func (r *run[T]) operations(from, to int) {
	t := r.tape
	for k := from; k < to; k++ {
		if t.time[k] > r.now || r.mayBeDue {
			r.advance(t.time[k], k)
		}
		r.mayBeDue = false
		id, op := t.id[k], t.op[k]
		former := r.pending[id]
		if rearmer, can := r.structure.(Rearmer[T]); can && former != nil && op > peerCancel {
			timer := r.timer(former)
			timer.operation, timer.deadline = int64(k), t.deadline[k]
			rearmer.rearm(former)
			r.mayBeDue = timer.deadline <= r.now
			continue
		}
		if op != peerStart && former != nil {
			r.structure.remove(former)
			r.pending[id] = nil
			r.count--
		}
		if op == peerCancel || op == peerRearm && former == nil {
			continue
		}
		added, timer := r.structure.newTimer()
		timer.operation, timer.deadline, timer.id = int64(k), t.deadline[k], id
		r.structure.add(added)
		r.pending[id] = added
		r.count++
		r.mayBeDue = timer.deadline <= r.now
	}
}

func (r *run[T]) advanceOnce() {
	r.advance(max(r.structure.nextWakeup(), r.now), len(r.tape.time))
}

func (r *run[T]) drain() {
	for r.count > 0 {
		r.advanceOnce()
	}
}

// singly times each operation, or each advance of the drain, on its own. The bins are powers of two
// of ns, eight in each; the counts end with one that is not 0.
func (r *run[T]) singly(from, to int, drains bool) string {
	var counts [peerBins]int
	last := -1
	for k := from; drains && r.count > 0 || k < to; k++ {
		started := clock(1)
		if drains {
			r.advanceOnce()
		} else {
			r.operations(k, k+1)
		}
		ns := clock(1) - started
		exponent := max(bits.Len64(uint64(ns))-4, 0)
		bin := 8*exponent + int(ns>>exponent)
		counts[bin]++
		last = max(last, bin)
	}
	return ", \"histogram\": " + strings.ReplaceAll(fmt.Sprint(counts[:last+1]), " ", ", ")
}

// clock reads a clock of the system: Go's own is virtual inside a bubble.
func clock(number uintptr) int64 {
	var read syscall.Timespec
	syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, number, uintptr(unsafe.Pointer(&read)), 0)
	return read.Nano()
}

func resident(field string) int64 {
	status, _ := os.ReadFile("/proc/self/status")
	_, rest, _ := strings.Cut(string(status), field)
	words := strings.Fields(rest)
	if len(words) == 0 {
		return 0
	}
	number, _ := strconv.ParseInt(words[0], 10, 64)
	return 1024 * number
}

func time_[T any](t *tape, make_ func(int64) Structure[T], timer func(*T) *Timer, rounds, warmUp int, withHistogram bool) {
	rows := make([][4]int64, len(t.time))
	for k := range rows {
		rows[k][0] = 1 // so that its pages exist
	}
	debug.FreeOSMemory() // what reading the tape has left
	before, memory := resident("VmRSS:"), int64(-1)
	os.WriteFile("/proc/self/clear_refs", []byte("5"), 0)
	for round := -warmUp; round < rounds; round++ {
		r := newRun(t, make_(t.firstTime), timer, rows)
		for phase := 0; phase <= len(t.first); phase++ {
			from, to, drains := 0, 0, phase == len(t.first)
			if !drains {
				from, to = int(t.first[phase]), len(t.time)
				if phase+1 < len(t.first) {
					to = int(t.first[phase+1])
				}
			}
			expired, wall, process := len(r.rows), clock(1), clock(2)
			histogram := ""
			switch {
			case withHistogram:
				histogram = r.singly(from, to, drains)
			case drains:
				r.drain()
			default:
				r.operations(from, to)
			}
			process, wall = clock(2)-process, clock(1)-wall
			if drains && memory < 0 {
				memory = max(resident("VmHWM:")-before, 0)
			}
			if round >= 0 {
				fmt.Printf(peerCommon+peerOwn+"%s}\n",
					round, phase, to-from, len(r.rows)-expired, wall, process, "null", memory, histogram)
			}
		}
	}
}

// service is a timer for several goroutines, in real time; H is what the caller keeps of a call.
type service[H any] struct {
	start  func(delay time.Duration, call func()) H
	cancel func(handle H) bool // false if the call is not pending
}

// threads lets goroutines divide a tape of starts and cancels by id; the units are milliseconds. There
// are as many Ps as the producers and what drives the timers can use.
func threads[H any](t *tape, s service[H], count, rounds, warmUp int, out string) error {
	n, records := len(t.time), out != ""
	spans := append(append([]int64{}, t.first...), int64(n), int64(n))
	starts := int64(0)
	for _, op := range t.op {
		if op == peerStart {
			starts++
		}
	}
	for round := -warmUp; round < rounds; round++ {
		var rows [][4]int64 // operation, what, begin, end: a call each, and then expiries
		if records {
			rows = make([][4]int64, 2*n+1000)
		}
		var expired, cancelled atomic.Int64
		handles := make([]H, t.idSpace)
		now := func() int64 {
			if records {
				return clock(1)
			}
			return 0
		}
		produce := func(number int, from, to int64) {
			took := int64(0)
			for k := from; k < to; k++ {
				id := int(t.id[k])
				if id%count != number {
					continue
				}
				begin, what := now(), int64(peerDone)
				if t.op[k] == peerCancel {
					if s.cancel(handles[id]) {
						took++
					} else {
						what = peerRefused
					}
				} else {
					handles[id] = s.start(time.Duration(t.deadline[k]-t.time[k])*peerUnitNs, func() {
						moment, at := now(), int64(n)+expired.Add(1)-1
						if at < int64(len(rows)) {
							rows[at] = [4]int64{k, peerRan, moment, moment}
						}
					})
				}
				if records {
					rows[k] = [4]int64{k, what, begin, clock(1)}
				}
			}
			cancelled.Add(took)
		}
		for phase := range len(t.first) + 1 {
			before, wall, process := expired.Load(), clock(1), clock(2)
			if phase < len(t.first) {
				var group sync.WaitGroup
				for number := range count {
					group.Add(1)
					go func() {
						defer group.Done()
						produce(number, spans[phase], spans[phase+1])
					}()
				}
				group.Wait()
			} else { // until all has been called that was not cancelled, or the grace is over; then for what is too many
				for turn := 0; turn < peerGraceMs && expired.Load()+cancelled.Load() < starts; turn++ {
					time.Sleep(time.Millisecond)
				}
				time.Sleep(peerSettleMs * time.Millisecond)
			}
			process, wall = clock(2)-process, clock(1)-wall
			if round >= 0 {
				fmt.Printf(peerCommon+"}\n", round, phase, spans[phase+1]-spans[phase], expired.Load()-before, wall, process)
			}
		}
		if records && round+1 == rounds {
			if err := write(out, rows[:min(int64(n)+expired.Load(), int64(len(rows)))]); err != nil {
				return err
			}
		}
	}
	return nil
}

// threadsMain runs the command `threads`.
func threadsMain[H any](name string, s service[H], words []string) {
	t, err := readTape(words[1])
	out, given := "", map[string]int{"--threads": peerProducers, "--rounds": peerThreadsRounds}
	for k := 2; k+1 < len(words); k += 2 {
		if words[k] == "--out" {
			out = words[k+1]
		} else {
			given[words[k]], _ = strconv.Atoi(words[k+1])
		}
	}
	if err == nil {
		err = threads(t, s, given["--threads"], given["--rounds"], given["--warm-up"], out)
	}
	if err != nil {
		fail(name, err)
	}
}

func write(path string, rows [][4]int64) error {
	bytes := make([]byte, 0, 32*len(rows))
	for _, row := range rows {
		for _, number := range row {
			bytes = binary.LittleEndian.AppendUint64(bytes, uint64(number))
		}
	}
	return os.WriteFile(path, bytes, 0o644)
}

// peerMain runs one of the protocol's commands. A goroutine may change threads, so that the CPU time
// of a thread says nothing.
func peerMain[T any](name, description string, make_ func(start int64) Structure[T], timer func(*T) *Timer, words []string) {
	switch {
	case len(words) == 1 && words[0] == "describe":
		fmt.Println(description)
	case len(words) == 3 && words[0] == "check":
		t, err := readTape(words[1])
		if err != nil {
			fail(name, err)
		}
		r := newRun(t, make_(t.firstTime), timer, nil)
		r.operations(0, len(t.time))
		r.drain()
		if err := write(words[2], r.rows); err != nil {
			fail(name, err)
		}
	case len(words) >= 2 && words[0] == "time":
		t, err := readTape(words[1])
		if err != nil {
			fail(name, err)
		}
		given := map[string]int{"--rounds": peerRounds, "--warm-up": peerWarmUp}
		for k := 2; k+1 < len(words); k += 2 {
			given[words[k]], _ = strconv.Atoi(words[k+1])
		}
		time_(t, make_, timer, given["--rounds"], given["--warm-up"], given["--histogram"] != 0)
	default:
		fail(name, "usage: "+peerCommands)
	}
}
