// The timers of Go's runtime (time.AfterFunc) in a bubble of testing/synctest, whose clock moves to
// the next timer when every goroutine waits. A unit is a millisecond. Each timer that fires starts a
// goroutine, as time.AfterFunc does.
package main

import (
	"os"
	"runtime"
	"runtime/debug"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

type entry struct {
	Timer
	timer *time.Timer
}

type bubble struct {
	start, now, pending int64
	begin               time.Time
	fire                func(*entry, int64)
	fired               []*entry // not yet delivered
	wake                chan struct{}
	mutex               sync.Mutex // of `fired`
}

func (b *bubble) newTimer() (*entry, *Timer) {
	timer := &entry{}
	return timer, &timer.Timer
}

func (b *bubble) delay(timer *entry) time.Duration {
	return time.Duration(max(timer.deadline-b.now, 0)) * time.Millisecond
}

func (b *bubble) rearm(timer *entry) { timer.timer.Reset(b.delay(timer)) }

func (b *bubble) add(timer *entry) {
	timer.timer = time.AfterFunc(b.delay(timer), func() {
		b.mutex.Lock()
		b.fired = append(b.fired, timer)
		b.mutex.Unlock()
		select {
		case b.wake <- struct{}{}:
		default:
		}
	})
}

func (b *bubble) remove(timer *entry) { timer.timer.Stop() }

func (b *bubble) advance(now int64, fire func(*entry, int64)) {
	if now > b.now {
		time.Sleep(b.begin.Add(time.Duration(now-b.start) * time.Millisecond).Sub(time.Now()))
		b.now = now
	}
	synctest.Wait() // until the goroutines of the timers have ended
	for _, timer := range b.fired {
		fire(timer, max(timer.deadline, b.start))
	}
	b.fired = b.fired[:0]
	select {
	case <-b.wake:
	default:
	}
}

// nextWakeup waits for a timer, which moves the clock.
func (b *bubble) nextWakeup() int64 {
	if len(b.fired) == 0 {
		<-b.wake
	}
	return b.start + time.Since(b.begin).Milliseconds()
}

func main() {
	if len(os.Args) > 2 && os.Args[1] == "threads" { // in real time, with all processors
		start := func(delay time.Duration, call func()) *time.Timer { return time.AfterFunc(delay, call) }
		threadsMain("go-runtime", service[*time.Timer]{start, (*time.Timer).Stop}, os.Args[1:])
		return
	}
	runtime.GOMAXPROCS(1) // so that goroutines start in the order of their timers
	debug.SetTraceback("none")
	description := `{"protocol": 1, "name": "go-runtime", "language": "Go", "library": "runtime",
 "version": "` + runtime.Version() + `", "scheme": "heap of four children (time.AfterFunc)",
 "rearm": "in place", "threads": "once", "limits": {"delay": 4000000000000, "step": 4000000000000},
 "notes": {"clock": "the bubble's work in moving the clock is timed too",
           "expiry": "a goroutine for each timer", "re-arm": "Timer.Reset"}}`
	words := os.Args[1:]
	test := testing.InternalTest{Name: "peer", F: func(t *testing.T) {
		synctest.Test(t, func(*testing.T) {
			timer := func(timer *entry) *Timer { return &timer.Timer }
			peerMain("go-runtime", description, func(start int64) Structure[entry] {
				return &bubble{start: start, now: start, begin: time.Now(), wake: make(chan struct{}, 1)}
			}, timer, words)
			os.Exit(0)
		})
	}}
	os.Args = os.Args[:1]
	everything := func(string, string) (bool, error) { return true, nil }
	testing.Main(everything, []testing.InternalTest{test}, nil, nil)
}
