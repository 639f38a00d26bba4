package seededbugs

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// root is the module's.
func root(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs(filepath.Join("..", ".."))
	require.NoError(t, err)
	return dir
}

// source is the bug's file as it is.
func (b bug) source(t *testing.T) (path, text string) {
	t.Helper()
	path = filepath.Join(root(t), filepath.FromSlash(b.file))
	content, err := os.ReadFile(path)
	require.NoError(t, err)
	return path, string(content)
}

// overlay writes the file with the bug, and returns go's flag that has it take the
// place of the right one.
func (b bug) overlay(t *testing.T) string {
	t.Helper()
	path, text := b.source(t)
	dir := t.TempDir()
	wrong := filepath.Join(dir, filepath.Base(path))
	require.NoError(t, os.WriteFile(wrong, []byte(strings.Replace(text, b.old, b.new, 1)), 0o600))
	list, err := json.Marshal(map[string]map[string]string{"Replace": {path: wrong}})
	require.NoError(t, err)
	file := filepath.Join(dir, "overlay.json")
	require.NoError(t, os.WriteFile(file, list, 0o600))
	return "-overlay=" + file
}

// outcome is what a check came to.
type outcome struct {
	caught  []string // the tests that failed
	passed  bool
	missing string // "NOT tested: …", where a server can't be had
	took    time.Duration
	output  string
}

var (
	failedTest = regexp.MustCompile(`(?m)^--- FAIL: (Test\S*)`)
	notTested  = regexp.MustCompile(`NOT tested: [^\n]*`)
)

// patience is how long a check may take once it is compiled.
const patience = "-timeout=150s"

// play runs a check in a process of its own, with a small share of its counts.
// Overlay is a flag, or "" for the code as it is.
func (c check) play(t *testing.T, overlay string) outcome {
	t.Helper()
	args := append([]string{"test", "-count=1", "-vet=off", "-v", "-failfast", patience, "-run=" + c.run}, buildFlags...)
	if overlay != "" {
		args = append(args, overlay)
	}
	args = append(append(args, "./"+c.pkg), c.args...)
	cmd := exec.CommandContext(t.Context(), "go", args...)
	cmd.Dir = root(t)
	cmd.Env = append(slices.DeleteFunc(os.Environ(), func(s string) bool { return strings.HasPrefix(s, "DUECLAIM_STRESS=") }), c.env...)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 10 * time.Second
	began := time.Now()
	said, err := cmd.CombinedOutput()
	o := outcome{passed: err == nil, took: time.Since(began), output: string(said), missing: notTested.FindString(string(said))}
	if broken := strings.Contains(o.output, "[build failed]") || strings.Contains(o.output, "[setup failed]") ||
		strings.Contains(o.output, "panic: test timed out"); broken || err == nil {
		return o
	}
	for _, match := range failedTest.FindAllStringSubmatch(o.output, -1) {
		o.caught = append(o.caught, match[1])
	}
	return o
}

// end is the end of a long output.
func end(output string) string {
	return output[max(0, len(output)-6000):]
}
