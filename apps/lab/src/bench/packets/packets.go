// The packets of `antiphon bench packets` in Go: a goroutine for each task.
package main

import (
	"flag"
	"fmt"
	"sync"
	"sync/atomic"
	"syscall"
)

var (
	packets   = flag.Uint64("packets", 50000, "how many packets")
	spawners  = flag.Uint64("spawners", 1, "goroutines that make them")
	chain     = flag.Int("chain", 0, "tasks that follow each, one after the other")
	heavierNs = flag.Int64("heavier_ns", 0, "how much longer each takes")
	heavy     = flag.String("heavy", "", "sleep or spin: what tasks of 20 ms do")
	rate      = flag.Float64("rate", 0, "packets a second; 0: as fast as it can be done")
	form      = flag.String("form", "corrected", "or published")
	copies    = flag.String("copies", "allocated", "or reused: of packets that are over")
	seed      = flag.Uint64("seed", 1, "of what is drawn by lot")
)

const (
	heavyOf    = 1000
	heavyTasks = 2
	heavyNs    = 20_000_000
	read       = 20
)

type buffer struct {
	bytes    []byte
	newlines uint64
}

// What each packet has come to; written by whoever handles it.
type outcome struct {
	latencyNs int64
	newlines  uint64
	scans     int32
	heavies   int32
}

var (
	buffers  []buffer
	outcomes []outcome
	expected atomic.Uint64
	sink     atomic.Uint64
	over     sync.Pool
)

func newBuffer(bytes, number int) buffer {
	made := buffer{bytes: make([]byte, bytes)}
	for at := range made.bytes {
		made.bytes[at] = '-'
		if at > 0 && at < 300 && at%(20+number) == 0 {
			made.bytes[at] = '\n'
			made.newlines++
		}
	}
	return made
}

//go:noinline
func scan(packet []byte) []uint32 {
	var places []uint32
	for at, b := range packet {
		if b == '\n' {
			places = append(places, uint32(at))
		}
	}
	return places
}

func busy(ns int64) {
	for end := now() + ns; now() < end; {
	}
}

func isHeavy(number uint64) bool {
	state := *seed ^ number
	return *heavy != "" && next(&state)%heavyOf == 0
}

func copied(from []byte) []byte {
	if *copies == "reused" {
		if used, ok := over.Get().(*[]byte); ok {
			return append((*used)[:0], from...)
		}
	}
	bytes := make([]byte, len(from))
	copy(bytes, from)
	return bytes
}

// A packet is over.
func drop(bytes []byte) {
	if *copies == "reused" {
		over.Put(&bytes)
	}
}

func endTask(number uint64) { count(number, now(), 1) }

func beHeavy(number uint64) {
	if *heavy == "spin" {
		busy(heavyNs)
	} else {
		wanted := syscall.NsecToTimespec(heavyNs)
		syscall.Nanosleep(&wanted, nil)
	}
	atomic.AddInt32(&outcomes[number].heavies, 1)
	endTask(number)
}

func handle(number uint64, since int64, bytes []byte) {
	if isHeavy(number) {
		for range heavyTasks {
			go beHeavy(number)
		}
	}
	if *form == "published" {
		bytes = copied(bytes)
	}
	one := &outcomes[number]
	one.newlines = uint64(len(scan(bytes)))
	one.scans++
	if *heavierNs > 0 {
		busy(*heavierNs)
	}
	if *chain > 0 {
		go follow(number, since, bytes, *chain-1)
	} else {
		one.latencyNs = now() - since
		drop(bytes)
	}
	endTask(number)
}

func follow(number uint64, since int64, bytes []byte, left int) {
	state := *seed ^ number<<8 ^ uint64(left)
	var sum uint64
	for range read {
		sum += uint64(bytes[next(&state)%uint64(len(bytes))])
	}
	if sum == 0 {
		sink.Add(1)
	}
	if left > 0 {
		go follow(number, since, bytes, left-1)
	} else {
		outcomes[number].latencyNs = now() - since
		drop(bytes)
	}
	endTask(number)
}

func spawn(spawner uint64) {
	state := *seed ^ spawner<<32
	var waited int64
	var newlines uint64
	for number := spawner; number < *packets; number += *spawners {
		from := &buffers[0]
		bytes := from.bytes
		if *form == "corrected" {
			from = &buffers[next(&state)%uint64(len(buffers))]
			bytes = copied(from.bytes)
		}
		newlines += from.newlines
		since := now()
		if *rate > 0 {
			due := int64(float64(number) * 1e9 / *rate)
			waited += waitUntil(due)
			since = due
		}
		number := number
		go handle(number, since, bytes)
	}
	waitedNs.Add(waited)
	expected.Add(newlines)
}

// What was not handled as it should have been, and the newlines of all.
func check(done int64, wanted int64) string {
	var newlines uint64
	for number := range outcomes {
		one := &outcomes[number]
		newlines += one.newlines
		if one.scans != 1 {
			return fmt.Sprintf("packet %d was scanned %d times", number, one.scans)
		}
		if isHeavy(uint64(number)) != (one.heavies == heavyTasks) {
			return fmt.Sprintf("packet %d made %d heavy tasks", number, one.heavies)
		}
	}
	if newlines != expected.Load() {
		return fmt.Sprintf("newlines: %d for %d", newlines, expected.Load())
	}
	if done != wanted {
		return fmt.Sprintf("tasks: %d for %d", done, wanted)
	}
	return ""
}

func main() {
	flag.Parse()
	kinds, least, step := 10, 2000, 30
	if *heavy != "" && *form == "published" {
		kinds, least, step = 100, 1000, 1
	}
	for number := range kinds {
		buffers = append(buffers, newBuffer(least+step*number, number%10))
	}
	outcomes = make([]outcome, *packets)
	wanted := int64(*packets) * int64(1+*chain)
	for number := range *packets {
		if isHeavy(number) {
			wanted += heavyTasks
		}
	}
	done := carryOut(*spawners, spawn, wanted)
	latencyNs := func(number int) int64 { return outcomes[number].latencyNs }
	report(done, check(done.tasks, wanted), len(outcomes), latencyNs)
}
