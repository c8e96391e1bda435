// The chains of `antiphon bench options` in Go: a goroutine for each step, which starts the next.
package main

import (
	"flag"
	"fmt"
	"math"
)

var (
	chains    = flag.Uint64("chains", 30000, "how many chains")
	spawners  = flag.Uint64("spawners", 1, "goroutines that begin them")
	kernel    = flag.String("kernel", "binomial", "or smith-waterman")
	depth     = flag.Int("depth", 20, "steps of most")
	longDepth = flag.Int("long_depth", 2000, "steps of some")
	longShare = flag.Float64("long_share", 0.005, "the probability of these")
	strike    = flag.Float64("strike", 110, "of the options")
	rate      = flag.Float64("rate", 0, "chains a second; 0: all at the beginning")
	seed      = flag.Uint64("seed", 1, "of what is drawn by lot")
)

const (
	pairs = 4
	same  = 2
	other = -1
	gap   = -1
)

type problem struct {
	depth     int
	one, two  []byte
	answer    float64
	isLattice bool
}

type chain struct {
	of       *problem
	values   []float64
	up, down float64
	scores   []int32
	done     int
	best     int32
}

// What each chain has come to; written by whoever ends it.
type outcome struct {
	latencyNs int64
	answer    float64
	ends      int32
}

var (
	short    []*problem
	long     []*problem
	outcomes []outcome
)

func (p *problem) begin() (*chain, bool) {
	if !p.isLattice {
		c := &chain{of: p, scores: make([]int32, len(p.two)+1)}
		return c, c.row()
	}
	step := 1.0 / float64(p.depth)
	jump := 0.02 * math.Sqrt(step)
	rises := (math.Exp(0.01*step) - math.Exp(-jump)) / (math.Exp(jump) - math.Exp(-jump))
	discount := math.Exp(-0.01 * step)
	c := &chain{of: p, up: discount * rises, down: discount * (1 - rises)}
	c.values = make([]float64, p.depth+1)
	for ups := range c.values {
		c.values[ups] = math.Max(100*math.Exp(jump*float64(2*ups-p.depth))-*strike, 0)
	}
	return c, true
}

func (c *chain) step() bool {
	if c.of.isLattice {
		return c.fold()
	}
	return c.row()
}

func (c *chain) fold() bool {
	values := c.values
	for at := 1; at < len(values); at++ {
		values[at-1] = c.up*values[at] + c.down*values[at-1]
	}
	c.values = values[:len(values)-1]
	return len(c.values) > 1
}

func (c *chain) row() bool {
	letter, corner := c.of.one[c.done], int32(0)
	for at, another := range c.of.two {
		above := c.scores[at+1]
		score := corner + other
		if letter == another {
			score = corner + same
		}
		score = max(score, above+gap, c.scores[at]+gap, 0)
		c.scores[at+1] = score
		c.best = max(c.best, score)
		corner = above
	}
	c.done++
	return c.done < len(c.of.one)
}

func (c *chain) answer() float64 {
	if c.of.isLattice {
		return c.values[0]
	}
	return float64(c.best)
}

func (p *problem) tasks() int64 {
	if p.isLattice {
		return int64(p.depth) + 1
	}
	return int64(p.depth)
}

func problems(depth int) (all []*problem) {
	state := *seed ^ uint64(depth)
	count := pairs
	if *kernel == "binomial" {
		count = 1
	}
	draw := func() []byte {
		letters := make([]byte, depth)
		for at := range letters {
			letters[at] = "ACGT"[next(&state)%4]
		}
		return letters
	}
	for range count {
		made := &problem{depth: depth, isLattice: *kernel == "binomial"}
		if !made.isLattice {
			made.one, made.two = draw(), draw()
		}
		c, more := made.begin()
		for more {
			more = c.step()
		}
		made.answer = c.answer()
		all = append(all, made)
	}
	return all
}

func problemOf(number uint64) *problem {
	state := *seed ^ number<<1
	all := short
	if float64(next(&state))/math.Exp2(64) < *longShare {
		all = long
	}
	return all[number%uint64(len(all))]
}

func follow(number uint64, since int64, c *chain) {
	if c.step() {
		go follow(number, since, c)
		return
	}
	end(number, since, c)
}

func first(number uint64, since int64) {
	c, more := problemOf(number).begin()
	if more {
		go follow(number, since, c)
		return
	}
	end(number, since, c)
}

func end(number uint64, since int64, c *chain) {
	at := now()
	out := &outcomes[number]
	out.latencyNs, out.answer = at-since, c.answer()
	out.ends++
	count(number, at, c.of.tasks())
}

func spawn(spawner uint64) {
	var waited int64
	for number := spawner; number < *chains; number += *spawners {
		due := int64(0)
		if *rate > 0 {
			due = int64(float64(number) * 1e9 / *rate)
			waited += waitUntil(due)
		}
		number := number
		go first(number, due)
	}
	waitedNs.Add(waited)
}

// What was not done as it should have been.
func check() string {
	for number := range outcomes {
		out := &outcomes[number]
		if out.ends != 1 {
			return fmt.Sprintf("chain %d has ended %d times", number, out.ends)
		}
		if out.answer != problemOf(uint64(number)).answer {
			return fmt.Sprintf("chain %d has found %g", number, out.answer)
		}
	}
	return ""
}

func main() {
	flag.Parse()
	short, long = problems(*depth), problems(*longDepth)
	outcomes = make([]outcome, *chains)
	wanted := int64(0)
	for number := range *chains {
		wanted += problemOf(number).tasks()
	}
	done := carryOut(*spawners, spawn, wanted)
	latencyNs := func(number int) int64 { return outcomes[number].latencyNs }
	report(done, check(), len(outcomes), latencyNs)
}
