package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"regexp"
	"runtime/pprof"
	"strings"
	"syscall"

	"github.com/dueclaim/dueclaim/bench/figures"
	"github.com/dueclaim/dueclaim/bench/report"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// pattern compiles one of systems' names, in which a plus sign stands for itself.
func pattern(s string) (*regexp.Regexp, error) {
	return regexp.Compile(bare.ReplaceAllString(s, `$1\+`))
}

var bare = regexp.MustCompile(`(^|[^\\])\+`)

func run(ctx context.Context, args []string) (err error) {
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	workloads := flags.String("run", "", "measure these workloads, separated by commas, or all; without it one drain a system is run, with -n, -keep and -workers")
	only := flags.String("systems", "", "only systems whose names match this pattern; nothing is written then")
	rounds := flags.Int("rounds", 3, "rounds, in which the systems alternate")
	quick := flags.Bool("quick", false, "each workload once with few tasks: a check that all of it works, figures of no worth")
	full := flags.Bool("full", false, "with 10 million pending tasks too, which takes minutes to fill")
	write := flags.String("write", "", "write the report, the pictures and the figures into this folder; figures there of other workloads stay")
	again := flags.String("report", "", "write the report and pictures again from the figures in this folder, and measure nothing")
	n := flags.Int("n", 50_000, "tasks of a drain without -run")
	keep := flags.Bool("keep", false, "keep finished rows in a drain without -run")
	workers := flags.Int("workers", 1, "schedulers of a drain without -run")
	profile := flags.String("cpuprofile", "", "write a profile here")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("%q is no flag of this command; want flags only (a value with spaces needs quotes)", flags.Arg(0))
	}
	match, err := pattern(*only)
	if err != nil {
		return err
	}
	if *again != "" {
		r, err := figures.Read(resultsFile(*again))
		if err != nil {
			return err
		}
		return report.Write(*again, r)
	}
	if *profile != "" {
		f, err := os.Create(*profile)
		if err != nil {
			return err
		}
		defer f.Close()
		if err := pprof.StartCPUProfile(f); err != nil {
			return err
		}
		defer pprof.StopCPUProfile()
	}
	m := newMachine()
	defer func() { err = errors.Join(err, m.close()) }()
	if *workloads == "" && !*quick {
		if *only == "" {
			match = regexp.MustCompile("^dueclaim") // the peers as they come take a minute a round
		}
		return profileDrain(ctx, m, profileOptions{only: match, rounds: *rounds, n: *n, keep: *keep, workers: *workers})
	}
	size := usual(*rounds, *full)
	if *quick {
		size = tiny()
	}
	s := &suite{machine: m, size: size, only: match, command: command(flags), commit: commit(ctx), results: newResults()}
	switch {
	case *write != "" && *only != "":
		fmt.Println("bench: nothing is written, as a page of some systems would lack the others (-systems)")
	case *write != "":
		s.into = *write
	}
	if *workloads == "" {
		*workloads = "all"
	}
	return s.run(ctx, strings.Split(*workloads, ","))
}
