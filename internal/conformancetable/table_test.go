package main

import (
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// lines are the events of a run in dir of all tests of the package "p".
type lines struct {
	t    *testing.T
	list []string
}

// begin starts a tree of its own with a whole run of what is added.
func begin(t *testing.T, argv ...string) *lines {
	t.Setenv("CI", "")
	t.Setenv("DUECLAIM_REQUIRE", "")
	t.Chdir(t.TempDir())
	require.NoError(t, os.Mkdir("docs", 0o755))
	dir, err := os.Getwd()
	require.NoError(t, err)
	return (&lines{t: t}).add(event{Action: "command", Dir: dir, Argv: append([]string{"go", "test", "-json"}, argv...)})
}

// again is a later run in the same tree.
func (l *lines) again() *lines { return &lines{t: l.t, list: l.list[:1:1]} }

func (l *lines) add(e event) *lines {
	e.Time = time.Now()
	text, err := json.Marshal(e)
	require.NoError(l.t, err)
	l.list = append(l.list, string(text))
	return l
}

func (l *lines) attr(test, key, value string) *lines {
	return l.add(event{Action: "attr", Package: "p", Test: test, Key: "dueclaim." + key, Value: value})
}

// ran adds a case as one configuration of a backend ran it; skip is "" where it
// was not left out.
func (l *lines) ran(config, backend, name, outcome, skip string) *lines {
	above := "Test" + config + "-" + backend
	test := above + "/" + name
	l.add(event{Action: "run", Package: "p", Test: above}).attr(above, "backend", backend)
	l.add(event{Action: "run", Package: "p", Test: test})
	l.attr(test, "case", name).attr(test, "rule", "The rule of "+name+".")
	if skip != "" {
		l.attr(test, "skip", skip)
	}
	return l.add(event{Action: outcome, Package: "p", Test: test}).add(event{Action: "pass", Package: "p", Test: above})
}

// lacks adds a test of a backend that skips, since it can't have its server.
func (l *lines) lacks(backend, server string) *lines {
	test := "TestLacks-" + backend
	return l.attr(test, "backend", backend).
		add(event{Action: "output", Package: "p", Test: test, Output: "    a_test.go:3: NOT tested: " + server + ": out of reach\n"}).
		add(event{Action: "skip", Package: "p", Test: test})
}

// do ends the run and gives it to the command.
func (l *lines) do(mode string) (string, error) {
	text := strings.Join(append(l.list, `{"Action":"pass","Package":"p"}`), "\n") + "\n"
	require.NoError(l.t, os.WriteFile("raw", []byte(text), 0o644))
	var out strings.Builder
	err := run(&out, mode, "raw", []string{"p"})
	return out.String(), err
}

// write must succeed; it returns the page.
func (l *lines) write() string {
	_, err := l.do("write")
	require.NoError(l.t, err)
	page, err := os.ReadFile("docs/conformance.md")
	require.NoError(l.t, err)
	return string(page)
}

func TestACaseCountsOnceHoweverManyConfigurationsRanIt(t *testing.T) {
	page := begin(t).
		ran("A", "store:memory", "claim/one", "pass", "").
		ran("B", "store:memory", "claim/one", "pass", "").
		ran("A", "store:memory", "claim/kept", "pass", "").
		ran("B", "store:memory", "claim/kept", "skip", "not provided: KeepsFinished").
		ran("A", "store:memory", "clock/now", "skip", "not provided: TimeSource").
		ran("A", "store:memory", "claim/deleted", "skip", "not for a backend that provides KeepsFinished").
		ran("A", "store:sqlite", "claim/one", "pass", "").
		ran("A", "store:sqlite", "clock/now", "pass", "").
		write()
	assert.Contains(t, page, "\n| | claim | clock | all |\n")
	assert.Contains(t, page, "\n| memory | ✓ 2 | not provided | ✓ 2, 1 not provided |\n")
	assert.Contains(t, page, "\n| sqlite | ✓ 1, 2 not tested | ✓ 1 | ✓ 2, 2 not tested |\n")
	assert.Contains(t, page, "\n| mariadb | not tested | not tested | not tested |\n")
	assert.Contains(t, page, "\n| `claim/kept` | The rule of claim/kept. | ✓ | · |")
	assert.Contains(t, page, "\n| `claim/deleted` | The rule of claim/deleted. | – | · |")
}

func TestASkipHasItsReasonAsAFootnote(t *testing.T) {
	page := begin(t).
		ran("A", "index:heap", "due/order", "skip", "skipped by the adapter: it has_no order").
		ran("A", "index:heap", "due/limit", "pass", "").
		ran("A", "index:redis", "due/limit", "pass", "").
		ran("B", "index:redis", "due/limit", "skip", "skipped by the adapter: the old protocol").
		write()
	assert.Contains(t, page, "\n| heap | ✓ 1, 1 skipped <sup>1</sup> | ✓ 1, 1 skipped |\n")
	assert.Contains(t, page, "\n| redis | ✓ 1, 1 not tested <sup>2</sup> | ✓ 1, 1 not tested |\n")
	assert.Contains(t, page, "| s <sup>1</sup> | · |")
	assert.Contains(t, page, "\n1. it has\\_no order\n2. in one configuration: the old protocol\n")
}

func TestAWeakerPromiseIsShownWithItsReason(t *testing.T) {
	l := begin(t).ran("A", "table:sqlite, Transition", "claim/one", "pass", "")
	l.attr("TestX", "backend", "store:mariadb").attr("TestX/b", "backend", "table:mariadb, Full")
	test := "TestX/b/claim/one"
	l.attr(test, "case", "claim/one").attr(test, "rule", "R.").attr(test, "weaker", "no-lease: nothing is taken")
	l.add(event{Action: "pass", Package: "p", Test: test}).add(event{Action: "pass", Package: "p", Test: "TestX/b"}).add(event{Action: "pass", Package: "p", Test: "TestX"})
	page := l.write()
	assert.Contains(t, page, "\n| sqlite, Transition | ✓ 1 | ✓ 1 |\n")
	assert.Contains(t, page, "\n| mariadb, Full | 1 weaker <sup>1</sup> | 1 weaker |\n")
	assert.Contains(t, page, "| w <sup>1</sup> |")
	assert.NotContains(t, page, "Claim stores", "it is the table's, not the store's")
	assert.Contains(t, page, "\n1. no-lease: nothing is taken\n")
}

func TestTheBackendIsThatOfAnyTestAbove(t *testing.T) {
	l := begin(t)
	l.attr("TestX", "backend", "index:heap")
	l.attr("TestX/a/add/one", "case", "add/one").attr("TestX/a/add/one", "rule", "R.")
	l.add(event{Action: "pass", Package: "p", Test: "TestX/a/add/one"})
	// Without a case, it is named as its test.
	l.attr("TestX/history/model#01", "group", "history").attr("TestX/history/model#01", "rule", "M.")
	l.add(event{Action: "pass", Package: "p", Test: "TestX/history/model#01"}).add(event{Action: "pass", Package: "p", Test: "TestX"})
	page := l.write()
	assert.Contains(t, page, "\n| heap | ✓ 1 | ✓ 1 | ✓ 2 |\n")
	assert.Contains(t, page, "\n| `history/model` | M. | ✓ |")
}

func TestWhatIsCommittedPassesTheCheckWithTheSameResults(t *testing.T) {
	l := begin(t).
		ran("A", "index:heap", "due/limit", "pass", "").
		ran("A", "pair:heap+memory", "run/once", "pass", "").
		attr("TestDoubles", "caught", "broken indexes: 28 of 28").add(event{Action: "pass", Package: "p", Test: "TestDoubles"})
	assert.Contains(t, l.write(), "\n- broken indexes: 28 of 28 caught\n")
	out, err := l.do("check")
	require.NoError(t, err, out)
	require.NoError(t, os.WriteFile("docs/conformance.svg", []byte("<svg/>"), 0o644))
	_, err = l.do("check")
	assert.ErrorContains(t, err, "docs/conformance.svg: not what this test run gives (0 differences): run make conformance")
}

func TestTheCheckNamesEachDifference(t *testing.T) {
	first := begin(t).
		ran("A", "index:heap", "due/limit", "pass", "").
		ran("A", "index:heap", "due/order", "pass", "").
		ran("A", "index:heap", "add/gone", "pass", "").
		ran("A", "index:redis double", "due/limit", "pass", "").
		attr("TestDoubles", "caught", "broken indexes: 28 of 28").add(event{Action: "pass", Package: "p", Test: "TestDoubles"})
	first.write()
	out, err := first.again().
		ran("A", "index:heap", "due/limit", "pass", "").
		ran("A", "index:heap", "due/order", "skip", "skipped by the adapter: no order").
		ran("A", "index:heap", "due/new", "pass", "").
		attr("TestA-index:heap/due/limit", "rule", "Another rule.").
		attr("TestDoubles", "caught", "broken indexes: 27 of 28").add(event{Action: "pass", Package: "p", Test: "TestDoubles"}).
		do("check")
	require.ErrorContains(t, err, "run make conformance")
	for _, want := range []string{
		`this run caught broken indexes: 27 of 28, the table has ["broken indexes: 28 of 28"]`,
		"index case add/gone is in the table, but no test ran it",
		"index case due/new is not in the table",
		`index case due/limit: the table has the rule "The rule of due/limit.", the suite "Another rule."`,
		`index:heap due/order: the table says "passed", this run "skipped by the adapter: no order"`,
		`index:redis double due/limit: the table says "passed", but no test ran it`,
	} {
		assert.Contains(t, out, want+"\n")
	}
}

func TestABackendWithoutItsServerKeepsWhatIsCommitted(t *testing.T) {
	first := begin(t).
		ran("A", "store:memory", "claim/one", "pass", "").
		ran("A", "store:mysql", "claim/one", "pass", "").
		ran("A", "pair:heap+mysql", "run/once", "pass", "")
	page := first.write()
	second := first.again().
		ran("A", "store:memory", "claim/one", "pass", "").
		ran("A", "pair:heap+memory", "run/once", "pass", "").
		lacks("store:mysql", "mysql")
	out, err := second.do("check")
	require.ErrorContains(t, err, "(1 differences)")
	assert.Contains(t, out, "store:mysql was NOT tested (out of reach): 1 results stay as they were committed\n")
	assert.Contains(t, out, "pair:heap+mysql was NOT tested (out of reach): 1 results stay as they were committed\n")
	assert.Contains(t, out, `pair:heap+memory run/once: the table says nothing, this run "passed"`)
	require.NotContains(t, page, "| heap+memory | ✓ 1 | ✓ 1 |")
	page = second.write()
	assert.Contains(t, page, "\n| mysql | ✓ 1 | ✓ 1 |\n")
	assert.Contains(t, page, "\n| heap+memory | ✓ 1 | ✓ 1 |\n")
}

// The machine that wrote the table may have had no MySQL; one that has it must
// not fail for that.
func TestAResultThatTheTableLacksOfAnOptionalBackendIsNoDifference(t *testing.T) {
	first := begin(t).ran("A", "store:memory", "claim/one", "pass", "")
	first.write()
	second := first.ran("A", "store:mysql", "claim/one", "pass", "")
	out, err := second.do("check")
	require.NoError(t, err)
	assert.Contains(t, out, "store:mysql: the table has no result yet for 1 cases that ran here")
	t.Setenv("DUECLAIM_REQUIRE", "mysql")
	_, err = second.do("check")
	assert.Error(t, err)
}

func TestARunThatIsNotWholeIsRefused(t *testing.T) {
	const heap, limit = "index:heap", "due/limit"
	_, err := begin(t, "-run", "TestA").ran("A", heap, limit, "pass", "").do("write")
	assert.ErrorContains(t, err, "left tests out (-run)")
	_, err = begin(t, "-skip=TestA").ran("A", heap, limit, "pass", "").do("check")
	assert.ErrorContains(t, err, "left tests out (-skip=TestA)")

	l := begin(t, "./p").ran("A", heap, limit, "pass", "")
	_, err = l.do("write")
	require.NoError(t, err)
	err = run(io.Discard, "write", "raw", []string{"p", "q"})
	assert.ErrorContains(t, err, "no end of q", "another package was not run")
	assert.ErrorContains(t, run(io.Discard, "write", "none", nil), "no test run yet")

	l = begin(t)
	l.list = nil
	_, err = l.ran("A", heap, limit, "pass", "").do("write")
	assert.ErrorContains(t, err, "none of make test")

	_, err = begin(t).add(event{Action: "run", Package: "p", Test: "TestHangs"}).do("write")
	assert.ErrorContains(t, err, "fell over in p")
	_, err = begin(t).add(event{Action: "fail", Package: "q"}).do("write")
	assert.ErrorContains(t, err, "fell over in q", "it doesn't build")
}

func TestAFailedCaseAndABugThatIsNotCaughtAreRefused(t *testing.T) {
	l := begin(t).ran("A", "index:heap", "due/limit", "fail", "")
	for _, mode := range []string{"usable", "write", "check"} {
		_, err := l.do(mode)
		assert.ErrorContains(t, err, "index:heap fails due/limit (p TestA-index:heap/due/limit)")
	}
	_, err := begin(t).attr("TestDoubles", "caught", "broken indexes: 27 of 28").
		add(event{Action: "fail", Package: "p", Test: "TestDoubles"}).do("write")
	assert.ErrorContains(t, err, "caught broken indexes: 27 of 28 (p TestDoubles)")
	assert.NoFileExists(t, "docs/conformance.md")
}

func TestARunOfAnotherTreeOrBeforeAChangeIsNotUsable(t *testing.T) {
	l := begin(t).ran("A", "index:heap", "due/limit", "pass", "")
	_, err := l.do("usable")
	require.NoError(t, err)
	require.NoError(t, os.WriteFile("a.go", nil, 0o644))
	require.NoError(t, os.Chtimes("a.go", time.Time{}, time.Now().Add(time.Minute)))
	for _, mode := range []string{"usable", "write", "check"} {
		_, err = l.do(mode)
		assert.ErrorContains(t, err, "a.go has changed since the last test run began", mode)
	}
	assert.NoFileExists(t, "docs/conformance.md")
	t.Chdir(t.TempDir())
	_, err = l.do("usable")
	assert.ErrorContains(t, err, "in another tree")
}

func TestThePictureIsWellFormedAndSaysWhatTheColoursSay(t *testing.T) {
	begin(t).
		ran("A", "index:heap", "due/limit", "pass", "").
		ran("A", "index:heap", "watch/many", "skip", "not provided: Watcher").
		ran("A", "index:redis double", "due/limit", "skip", "skipped by the adapter: a < b & c").
		ran("A", "store:sqlite", "claim/one", "pass", "").
		ran("A", "pair:heap+sqlite", "run/once", "pass", "").
		write()
	text, err := os.ReadFile("docs/conformance.svg")
	require.NoError(t, err)
	for d := xml.NewDecoder(strings.NewReader(string(text))); ; {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			break
		} else if !assert.NoError(t, err) {
			break
		}
	}
	for _, want := range []string{"<title>✓ 1</title>", ">–</text>", ">s</text>", ">?</text>", "rotate(-45)\">with heap</text>", ">redis cluster</text>"} {
		assert.Contains(t, string(text), want)
	}
}
