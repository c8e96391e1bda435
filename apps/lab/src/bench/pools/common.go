// What the programs in Go of `antiphon bench packets` and `bench options` share: when their tasks
// begin, how those are counted, and what is printed of them.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"sync/atomic"
	"syscall"
	"time"
)

// A count that few write to at a time.
type shard struct {
	tasks atomic.Int64
	last  atomic.Int64
	_     [112]byte
}

// What a run took.
type run struct {
	tasks  int64
	cpuNs  int64
	lastNs int64
}

var (
	begun    = time.Now()
	shards   [64]shard
	waitedNs atomic.Int64
)

func now() int64 { return int64(time.Since(begun)) }

func next(state *uint64) uint64 {
	*state += 0x9e3779b97f4a7c15
	mixed := (*state ^ (*state >> 30)) * 0xbf58476d1ce4e5b9
	mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111eb
	return mixed ^ (mixed >> 31)
}

// Spins until then; for how long.
func waitUntil(due int64) (waited int64) {
	if since := now(); since < due {
		waited = due - since
	}
	for now() < due {
	}
	return waited
}

// So many tasks of that number are done at that time.
func count(number uint64, at int64, tasks int64) {
	one := &shards[number%uint64(len(shards))]
	for last := one.last.Load(); last < at; last = one.last.Load() {
		if one.last.CompareAndSwap(last, at) {
			break
		}
	}
	one.tasks.Add(tasks)
}

func cpuNs() int64 {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		panic(err)
	}
	return usage.Utime.Nano() + usage.Stime.Nano()
}

// Starts `spawners` goroutines that spawn tasks, and waits until `wanted` tasks are done.
func carryOut(spawners uint64, spawn func(uint64), wanted int64) (done run) {
	runtime.GC()
	before := cpuNs()
	begun = time.Now()
	for spawner := range spawners {
		go spawn(spawner)
	}
	for done.tasks < wanted {
		time.Sleep(time.Millisecond)
		done.tasks = 0
		for at := range shards {
			done.tasks += shards[at].tasks.Load()
		}
	}
	done.cpuNs = cpuNs() - before
	for at := range shards {
		done.lastNs = max(done.lastNs, shards[at].last.Load())
	}
	return done
}

// Prints the result of a run, with `latencies` latencies: how often each was seen, known as well as
// by the other peers, 32 to an octave.
func report(done run, wrong string, latencies int, latencyNs func(int) int64) {
	var sum float64
	buckets := map[uint64]uint64{}
	for number := range latencies {
		ns := uint64(max(latencyNs(number), 0))
		sum += float64(ns)
		shift := 0
		for ns>>shift >= 64 {
			shift++
		}
		buckets[ns>>shift<<shift]++
	}
	var seen [][2]uint64
	for ns, times := range buckets {
		seen = append(seen, [2]uint64{ns, times})
	}
	printed := map[string]any{
		"wrong":        wrong,
		"seconds":      float64(done.lastNs) / 1e9,
		"tasks":        done.tasks,
		"cpu_ns":       done.cpuNs,
		"waited_ns":    waitedNs.Load(),
		"sum_ns":       sum,
		"latencies_ns": seen,
	}
	if err := json.NewEncoder(os.Stdout).Encode(printed); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
