// Goroutines for `antiphon bench tasks`: main CASE WORKERS BATCH FIBONACCI SECONDS.
// Prints the outcome of one repetition as the others do.
package main

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

func main() {
	if len(os.Args) != 6 {
		fail("wants CASE WORKERS BATCH FIBONACCI SECONDS")
	}
	workers, batch, n := number(os.Args[2]), number(os.Args[3]), number(os.Args[4])
	seconds, err := strconv.ParseFloat(os.Args[5], 64)
	if err != nil {
		fail(err.Error())
	}
	runtime.GOMAXPROCS(workers)
	switch os.Args[1] {
	case "spawn_join":
		timed(seconds, batch, func() { spawnJoin(batch) })
	case "fork_join":
		timed(seconds, forks(n), func() { fibonacci(n) })
	case "idle", "parked":
		memory(batch)
	case "channel":
		timed(seconds, 10000, func() { channel(batch, 10000, 0) })
	case "across":
		timed(seconds, 10000, func() { channel(batch, 10000, 2) })
	case "select":
		timed(seconds, 10000, func() { selects(batch, 10000) })
	case "yield":
		timed(seconds, batch*1000, func() { yields(batch, 1000) })
	default:
		fail("no case " + os.Args[1])
	}
}

func number(text string) int {
	number, err := strconv.Atoi(text)
	if err != nil {
		fail(err.Error())
	}
	return number
}

func fail(what string) {
	fmt.Fprintln(os.Stderr, what)
	os.Exit(2)
}

func timed(seconds float64, tasks int, round func()) {
	begun := time.Now()
	round()
	times := int(min(max(seconds/time.Since(begun).Seconds(), 1), 1e6))
	before := cpu()
	begun = time.Now()
	for i := 0; i < times; i++ {
		round()
	}
	took := time.Since(begun)
	all := float64(tasks) * float64(times)
	fmt.Printf("{\"figures\":{\"ns_per_op\":%f,\"cpu_ns_per_op\":%f}}\n",
		float64(took.Nanoseconds())/all, float64(cpu()-before)/all)
}

func cpu() int64 {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		fail(err.Error())
	}
	return usage.Utime.Nano() + usage.Stime.Nano()
}

func spawnJoin(batch int) {
	var group sync.WaitGroup
	group.Add(batch)
	for i := 0; i < batch; i++ {
		go group.Done()
	}
	group.Wait()
}

func fibonacci(n int) uint64 {
	if n < 2 {
		return uint64(n)
	}
	var other uint64
	var group sync.WaitGroup
	group.Add(1)
	go func() {
		other = fibonacci(n - 2)
		group.Done()
	}()
	one := fibonacci(n - 1)
	group.Wait()
	return one + other
}

func forks(n int) int {
	one, other := 0, 0
	for i := 2; i <= n; i++ {
		one, other = one+other+1, one
	}
	return one
}

// A goroutine sends another `messages` messages; where they meet, each has a thread of its own then.
func channel(room, messages int, meet int64) {
	numbers, received := make(chan int, room), make(chan int)
	var come atomic.Int64
	meeting := func() {
		come.Add(1)
		for come.Load() < meet {
		}
	}
	go func() {
		meeting()
		for i := 0; i < messages; i++ {
			numbers <- i
		}
		close(numbers)
	}()
	go func() {
		meeting()
		count := 0
		for range numbers {
			count++
		}
		received <- count
	}()
	if <-received != messages {
		fail("messages were lost")
	}
}

// Two goroutines send another one half of `messages` messages each.
func selects(room, messages int) {
	one, other := make(chan int, room), make(chan int, room)
	received := make(chan bool)
	for _, numbers := range []chan int{one, other} {
		go func() {
			for i := 0; i < messages/2; i++ {
				numbers <- i
			}
		}()
	}
	go func() {
		for i := 0; i < messages; i++ {
			select {
			case <-one:
			case <-other:
			}
		}
		received <- true
	}()
	<-received
}

// So many goroutines yield so often each.
func yields(tasks, each int) {
	var group sync.WaitGroup
	group.Add(tasks)
	for i := 0; i < tasks; i++ {
		go func() {
			for j := 0; j < each; j++ {
				runtime.Gosched()
			}
			group.Done()
		}()
	}
	group.Wait()
}

// Goroutines that wait: one that was never run can't be kept from it.
func memory(tasks int) {
	var group sync.WaitGroup
	gate := make(chan struct{})
	runtime.GC()
	before := resident()
	group.Add(tasks)
	for i := 0; i < tasks; i++ {
		go func() {
			<-gate
			group.Done()
		}()
	}
	runtime.Gosched()
	grown := resident() - before
	close(gate)
	group.Wait()
	fmt.Printf("{\"figures\":{\"bytes_per_task\":%f}}\n", float64(grown)/float64(tasks))
}

func resident() int {
	line, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		fail(err.Error())
	}
	return number(strings.Fields(string(line))[1]) * os.Getpagesize()
}
