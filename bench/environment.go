package main

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/dueclaim/dueclaim/bench/figures"
	"github.com/dueclaim/dueclaim/internal/testserver/server"
)

// plainWord is what a shell takes as it is.
var plainWord = regexp.MustCompile(`^[\w.,/-]+$`)

// command is this call as a shell takes it, each flag once.
func command(flags *flag.FlagSet) string {
	words := []string{"go run ."}
	flags.Visit(func(f *flag.Flag) {
		value := f.Value.String()
		if !plainWord.MatchString(value) {
			value = "'" + strings.ReplaceAll(value, "'", `'\''`) + "'"
		}
		if value == "true" {
			words = append(words, "-"+f.Name)
		} else {
			words = append(words, "-"+f.Name, value)
		}
	})
	return strings.Join(words, " ")
}

// commit names what was measured, "?" outside a clone.
func commit(ctx context.Context) string {
	name, err := exec.CommandContext(ctx, "git", "describe", "--always", "--dirty", "--exclude=*").Output()
	if err != nil {
		return "?"
	}
	return strings.TrimSpace(string(name))
}

// newResults says where and with what the run takes place.
func newResults() *figures.Results {
	r := &figures.Results{
		Machine: figures.Machine{
			CPU: field("/proc/cpuinfo", "model name"), Cores: runtime.NumCPU(),
			Memory: memorySize(field("/proc/meminfo", "MemTotal")), System: runtime.GOOS + "/" + runtime.GOARCH + " " + firstLine("/proc/sys/kernel/osrelease"),
		},
	}
	for _, s := range systems() {
		r.Systems = append(r.Systems, figures.System{Name: s.name, Settings: s.settings})
	}
	for _, kind := range []serverKind{server.Redis, server.Postgres, server.MariaDB, server.MySQL} {
		if binary, err := server.Find(kind); err == nil {
			r.Programs = append(r.Programs, figures.Program{Name: string(kind), Version: binary.Version(), Args: strings.Join(serverArgs[kind], " ")})
		}
	}
	r.Programs = append(r.Programs, figures.Program{Name: "Go", Version: strings.TrimPrefix(runtime.Version(), "go")})
	return withModules(r)
}

// withModules adds the versions of the libraries that are compared, and of their
// drivers.
func withModules(r *figures.Results) *figures.Results {
	shown := []string{"github.com/riverqueue/river", "github.com/hibiken/asynq", "github.com/jackc/pgx/v5", "github.com/redis/go-redis/v9",
		"github.com/go-sql-driver/mysql", "modernc.org/sqlite"}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return r
	}
	for _, dep := range info.Deps {
		if slices.Contains(shown, dep.Path) {
			r.Programs = append(r.Programs, figures.Program{Name: dep.Path, Version: dep.Version})
		}
	}
	return r
}

// field is the first value of a name in a file of "name: value" lines, "?" where
// there is none.
func field(path, name string) string {
	f, err := os.Open(path)
	if err != nil {
		return "?"
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		key, value, _ := strings.Cut(lines.Text(), ":")
		if strings.TrimSpace(key) == name {
			return strings.TrimSpace(value)
		}
	}
	return "?"
}

// memorySize turns "24590112 kB" into "23.5 GiB".
func memorySize(kB string) string {
	var n float64
	if _, err := fmt.Sscanf(kB, "%f kB", &n); err != nil {
		return kB
	}
	return fmt.Sprintf("%.1f GiB", n/(1<<20))
}

func firstLine(path string) string {
	text, err := os.ReadFile(path)
	if err != nil {
		return "?"
	}
	line, _, _ := strings.Cut(string(text), "\n")
	return line
}
