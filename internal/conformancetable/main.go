// Command conformancetable writes docs/conformance.md, which says how each
// backend fared in the conformance suite, from the events that a run of the tests
// left ("testreport -raw FILE"):
//
//	conformancetable usable FILE   is it a whole run of this tree as it is?
//	conformancetable write FILE    write the page, its picture and its data
//	conformancetable check FILE    fail where they differ from what write would write
//
// docs/conformance.jsonl is the data, from which page and picture are made. A
// backend whose server this machine doesn't have keeps the results that were
// committed.
package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// data is read back; the others are only written.
const data = "docs/conformance.jsonl"

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: conformancetable usable|write|check FILE")
		os.Exit(2)
	}
	packages, err := tested()
	if err == nil {
		err = run(os.Stdout, os.Args[1], os.Args[2], packages)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "conformance:", err)
		os.Exit(1)
	}
}

// tested are the packages with tests, of which a whole run has an end.
func tested() ([]string, error) {
	list := exec.Command("go", "list", "-f", "{{if or .TestGoFiles .XTestGoFiles}}{{.ImportPath}}{{end}}", "./...")
	list.Stderr = os.Stderr
	out, err := list.Output()
	return strings.Fields(string(out)), err
}

func run(out io.Writer, mode, path string, packages []string) error {
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return errors.New("there is no test run yet: run make test")
	}
	if err != nil {
		return err
	}
	defer file.Close()
	r, err := readRun(file)
	if err != nil {
		return err
	}
	if err := r.whole(packages); err != nil {
		return fmt.Errorf("%w: run make test, all of it", err)
	}
	// Also before a write: where make test dies before it leaves its events, those
	// of an older run are still there.
	if err := r.recent(); err != nil {
		return fmt.Errorf("%w: run make test", err)
	}
	now, err := gather(r)
	if err != nil {
		return fmt.Errorf("the table knows no failed cases: mend these and run make test\n%w", err)
	}
	switch mode {
	case "usable":
		return nil
	case "write":
		return write(out, now, r.excuses())
	case "check":
		return check(out, now, r.excuses())
	}
	return fmt.Errorf("unknown command %q", mode)
}

// recent fails when the run was of another tree, or before a change to this one.
func (r *testRun) recent() error {
	dir, err := os.Getwd()
	if err != nil {
		return err
	}
	if dir != r.dir {
		return fmt.Errorf("the last test run was in another tree (%s)", r.dir)
	}
	return filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() && strings.HasPrefix(entry.Name(), ".") {
			return fs.SkipDir
		}
		switch filepath.Ext(path) {
		case ".go", ".mod", ".lua":
			info, err := entry.Info()
			if err == nil && info.ModTime().After(r.began) {
				err = fmt.Errorf("%s has changed since the last test run began (%s)", path, r.began.Local().Format(time.DateTime))
			}
			return err
		}
		return nil
	})
}

// write writes all files.
func write(out io.Writer, now *results, excuses map[string]string) error {
	committed, err := load(data)
	if err != nil {
		return err
	}
	for _, line := range now.merge(committed, excuses) {
		fmt.Fprintln(out, line)
	}
	files, err := now.files()
	if err != nil {
		return err
	}
	for _, f := range files {
		if err := os.WriteFile(f.path, f.text, 0o644); err != nil {
			return err
		}
		fmt.Fprintln(out, "wrote", f.path)
	}
	return nil
}

// shown is how many differences check prints: a new case differs in every row.
const shown = 20

// check fails where the committed files differ from what write would write.
func check(out io.Writer, now *results, excuses map[string]string) error {
	committed, err := load(data)
	if err != nil {
		return err
	}
	for _, line := range now.merge(committed, excuses) {
		fmt.Fprintln(out, line)
	}
	differences, notes := now.compare(committed)
	for _, line := range append(notes, differences[:min(shown, len(differences))]...) {
		fmt.Fprintln(out, line)
	}
	if more := len(differences) - shown; more > 0 {
		fmt.Fprintf(out, "… and %d more\n", more)
	}
	files, err := now.files()
	if err != nil {
		return err
	}
	var stale []string
	for _, f := range files {
		if text, err := os.ReadFile(f.path); err != nil || !bytes.Equal(text, f.text) {
			stale = append(stale, f.path)
		}
	}
	if len(stale) > 0 {
		return fmt.Errorf("%s: not what this test run gives (%d differences): run make conformance and commit what it writes",
			strings.Join(stale, ", "), len(differences))
	}
	fmt.Fprintln(out, "docs/conformance.md is what this test run gives")
	return nil
}

type file struct {
	path string
	text []byte
}

func (r *results) files() ([]file, error) {
	encoded, err := r.encode()
	return []file{
		{data, encoded}, {"docs/conformance.md", r.markdown()}, {"docs/conformance.svg", r.svg()},
	}, err
}
