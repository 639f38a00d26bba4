package main

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// report runs the tool on canned events (' stands for ") and returns what it
// printed and its status.
func report(t *testing.T, status string, lines ...string) (string, int) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "events")
	text := strings.ReplaceAll(strings.Join(lines, "\n")+"\n", "'", `"`)
	require.NoError(t, os.WriteFile(file, []byte(text), 0o644))
	var out strings.Builder
	got, err := run(&out, "", []string{"sh", "-c", "cat " + file + "; exit " + status})
	require.NoError(t, err)
	return out.String(), got
}

// rowOf returns the closing table's result for a backend.
func rowOf(t *testing.T, out, class, name string) string {
	t.Helper()
	for line := range strings.Lines(out) {
		if rest, ok := strings.CutPrefix(line, class); ok {
			if rest, ok = strings.CutPrefix(strings.TrimSpace(rest), name+"  "); ok {
				return strings.TrimSpace(rest)
			}
		}
	}
	t.Fatalf("no row %s %s in:\n%s", class, name, out)
	return ""
}

func alone(t *testing.T) {
	t.Helper()
	t.Setenv("CI", "")
	t.Setenv("DUECLAIM_REQUIRE", "")
}

const redisPasses = `{'Action':'run','Package':'p','Test':'TestR'}
{'Action':'attr','Package':'p','Test':'TestR','Key':'dueclaim.backend','Value':'index:redis'}
{'Action':'run','Package':'p','Test':'TestR/a'}
{'Action':'pass','Package':'p','Test':'TestR/a'}
{'Action':'skip','Package':'p','Test':'TestR/b'}
{'Action':'pass','Package':'p','Test':'TestR'}
{'Action':'pass','Package':'p','Elapsed':1.5}`

func TestABackendIsPassedWhenATestBelowItsAttributePassed(t *testing.T) {
	alone(t)
	out, status := report(t, "0", redisPasses)
	require.Zero(t, status)
	require.Equal(t, "passed (1 tests, 1 skipped)", rowOf(t, out, "index", "redis"))
	require.Equal(t, "NOT tested: no test ran", rowOf(t, out, "store", "postgres (database/sql)"))
	require.Contains(t, out, "\n1 passed, 0 failed, 1 skipped\n")
	lines := strings.Split(strings.TrimSpace(out), "\n")
	require.Regexp(t, `^double +pgclaim on sqlmock +NOT tested`, lines[len(lines)-1], "the table comes last")
}

func TestWhatIsCaughtIsSaidBeforeTheTable(t *testing.T) {
	alone(t)
	out, _ := report(t, "0", redisPasses,
		`{'Action':'attr','Package':'q','Test':'TestD','Key':'dueclaim.figure','Value':'kills: 300, 0 lost'}`,
		`{'Action':'attr','Package':'q','Test':'TestD','Key':'dueclaim.caught','Value':'broken indexes: 28 of 28'}`,
		`{'Action':'pass','Package':'q','Test':'TestD'}`,
		`{'Action':'pass','Package':'q'}`)
	require.Contains(t, out, "\nbroken indexes: 28 of 28 caught\nfigure: kills: 300, 0 lost\n\nindex  heap ")
}

func TestTheRawFileSaysFirstWhatWasRun(t *testing.T) {
	raw := filepath.Join(t.TempDir(), "raw")
	_, err := run(io.Discard, raw, []string{"echo", "{}"})
	require.NoError(t, err)
	text, err := os.ReadFile(raw)
	require.NoError(t, err)
	dir, err := os.Getwd()
	require.NoError(t, err)
	require.Equal(t, `{"Action":"command","Dir":"`+dir+`","Argv":["echo","{}"]}`+"\n{}\n", string(text))
}

func TestABackendWhoseTestsAllSkippedIsNotTestedThoughTheirParentPassed(t *testing.T) {
	alone(t)
	out, _ := report(t, "0",
		`{'Action':'attr','Package':'p','Test':'TestM','Key':'dueclaim.backend','Value':'store:mysql'}`,
		`{'Action':'output','Package':'p','Test':'TestM/a','Output':'    a_test.go:3: NOT tested: mysql: sid is out of reach\n'}`,
		`{'Action':'skip','Package':'p','Test':'TestM/a'}`,
		`{'Action':'pass','Package':'p','Test':'TestM'}`,
		`{'Action':'pass','Package':'p'}`)
	require.Equal(t, "NOT tested: sid is out of reach", rowOf(t, out, "store", "mysql"))
	require.Equal(t, "NOT tested: sid is out of reach", rowOf(t, out, "pair", "heap+mysql"), "without an attribute, by the server it needs")
}

func TestASkipOfAServerOutsideOfTheTableIsNamedToo(t *testing.T) {
	alone(t)
	out, _ := report(t, "0", redisPasses,
		`{'Action':'output','Package':'q','Test':'TestB','Output':'    b_test.go:3: NOT tested: oracle: no oracle in PATH\n'}`,
		`{'Action':'skip','Package':'q','Test':'TestB'}`,
		`{'Action':'pass','Package':'q'}`)
	require.Equal(t, "NOT tested: no oracle in PATH", rowOf(t, out, "with", "oracle"))
}

func TestAFailureIsShownWithItsOutputAndKeepsGoTestsStatus(t *testing.T) {
	alone(t)
	out, status := report(t, "3",
		`{'Action':'run','Package':'p','Test':'TestF'}`,
		`{'Action':'attr','Package':'p','Test':'TestF','Key':'dueclaim.backend','Value':'pair:heap+sqlite'}`,
		`{'Action':'output','Package':'p','Test':'TestF/a','Output':'=== RUN   TestF/a\n'}`,
		`{'Action':'output','Package':'p','Test':'TestF/a','Output':'    got 1, want 2\n'}`,
		`{'Action':'fail','Package':'p','Test':'TestF/a'}`,
		`{'Action':'pass','Package':'p','Test':'TestF/b'}`,
		`{'Action':'fail','Package':'p','Test':'TestF'}`,
		`{'Action':'fail','Package':'p'}`)
	require.Equal(t, 3, status)
	require.Contains(t, out, "--- p TestF/a\n    got 1, want 2\n")
	require.Contains(t, out, "failed: p TestF/a\n1 passed, 1 failed, 0 skipped\n")
	require.Equal(t, "FAILED: p TestF", rowOf(t, out, "pair", "heap+sqlite"))
}

func TestATestWithoutAnEndFailed(t *testing.T) {
	alone(t)
	out, _ := report(t, "1",
		`{'Action':'attr','Package':'p','Test':'TestP','Key':'dueclaim.backend','Value':'index:heap'}`,
		`{'Action':'output','Package':'p','Test':'TestP','Output':'panic: boom\n'}`,
		`{'Action':'fail','Package':'p'}`)
	require.Contains(t, out, "panic: boom")
	require.Contains(t, out, "\n0 passed, 1 failed, 0 skipped\n")
	require.Equal(t, "FAILED: p TestP", rowOf(t, out, "index", "heap"))
}

func TestARunThatIsCutOffFailsWhatWasRunning(t *testing.T) {
	alone(t)
	out, status := report(t, "1", redisPasses,
		`{'Action':'run','Package':'q','Test':'TestQ'}`,
		`{'Action':'attr','Package':'q','Test':'TestQ','Key':'dueclaim.backend','Value':'store:memory'}`)
	require.Equal(t, 1, status)
	require.Contains(t, out, "it was cut off")
	require.Contains(t, out, "\n1 passed, 1 failed, 1 skipped\n")
	require.Equal(t, "FAILED: q TestQ", rowOf(t, out, "store", "memory"))
}

func TestAPackageThatDoesNotBuildCountsAsFailedWithTheCompilersWords(t *testing.T) {
	alone(t)
	out, status := report(t, "1", redisPasses,
		`{'ImportPath':'q [q.test]','Action':'build-output','Output':'q/a.go:1:1: undefined: x\n'}`,
		`{'ImportPath':'q [q.test]','Action':'build-fail'}`,
		`{'Action':'start','Package':'q'}`,
		`{'Action':'output','Package':'q','Output':'FAIL\tq [build failed]\n'}`,
		`{'Action':'fail','Package':'q','FailedBuild':'q [q.test]'}`)
	require.Equal(t, 1, status)
	require.Contains(t, out, "undefined: x")
	require.Contains(t, out, "\n1 passed, 1 failed, 1 skipped\n")
}

func TestARequiredBackendThatWasNotTestedFailsTheRun(t *testing.T) {
	alone(t)
	t.Setenv("DUECLAIM_REQUIRE", "redis,mariadb")
	out, status := report(t, "0", redisPasses)
	require.Equal(t, 1, status)
	require.Contains(t, out, "failed: store mariadb is required, but was NOT tested\n")
	require.NotContains(t, out, "index redis is required")
}

func TestCIRequiresAllButMySQL(t *testing.T) {
	alone(t)
	t.Setenv("CI", "true")
	out, status := report(t, "0", redisPasses)
	require.Equal(t, 1, status)
	require.Contains(t, out, "failed: store sqlite is required")
	require.Contains(t, out, "failed: pair redis+postgres (pgx) is required")
	require.NotContains(t, out, "mysql is required")
}

func TestAMisspeltNameFailsTheRun(t *testing.T) {
	alone(t)
	t.Setenv("DUECLAIM_REQUIRE", "maria")
	out, status := report(t, "0", redisPasses,
		`{'Action':'attr','Package':'q','Test':'TestQ','Key':'dueclaim.backend','Value':'store:postgres'}`,
		`{'Action':'pass','Package':'q','Test':'TestQ'}`,
		`{'Action':'pass','Package':'q'}`)
	require.Equal(t, 1, status)
	require.Contains(t, out, `names an unknown backend: "store:postgres"`)
	require.Contains(t, out, `names an unknown server: "maria"`)
}

func TestARunWithoutTestsFails(t *testing.T) {
	alone(t)
	out, status := report(t, "0", `{'Action':'skip','Package':'p'}`)
	require.Equal(t, 1, status)
	require.Contains(t, out, "failed: no test ran")
}

func TestASlashInASubtestsOwnNameMakesNoTestOfItsOwn(t *testing.T) {
	alone(t)
	out, status := report(t, "0",
		`{'Action':'run','Package':'p','Test':'TestS'}`,
		`{'Action':'run','Package':'p','Test':'TestS/a/b/c'}`,
		`{'Action':'pass','Package':'p','Test':'TestS/a/b/c'}`,
		`{'Action':'pass','Package':'p','Test':'TestS'}`,
		`{'Action':'pass','Package':'p'}`)
	require.Zero(t, status)
	require.Contains(t, out, "\n1 passed, 0 failed, 0 skipped\n")
}

func TestOutputThatIsNoEventIsPassedOn(t *testing.T) {
	alone(t)
	out, _ := report(t, "1", "go: cannot find main module")
	require.Contains(t, out, "go: cannot find main module")
}
