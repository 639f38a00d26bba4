package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/dueclaim/dueclaim/core"
)

var due = time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)

// ran is the records of one whole run of a task.
func ran(worker string, id core.ID, token int64, late time.Duration) []record {
	r := record{Worker: worker, ID: id, Token: token, Due: due, Start: due.Add(late)}
	begun, ended, stored := r, r, record{Event: accepted, Worker: worker, ID: id, Token: token}
	begun.Event, ended.Event = started, finished
	ended.End = ended.Start.Add(time.Millisecond)
	return []record{begun, ended, stored}
}

func takenOver(records []record) []record {
	for i := range records {
		records[i].TakenOver = true
	}
	return records
}

func together(lists ...[]record) (all []record) {
	for _, l := range lists {
		all = append(all, l...)
	}
	return all
}

func printed(s summary) string {
	var b bytes.Buffer
	s.print(&b)
	return b.String()
}

func TestSummaryOfACleanRun(t *testing.T) {
	sum := summarize(3, 3, together(
		ran("worker-1", "a", 1, time.Millisecond),
		ran("worker-2", "b", 1, 3*time.Millisecond),
		ran("worker-3", "c", 1, 0)[:1], // killed
		takenOver(ran("worker-1", "c", 2, 4*time.Second)),
	), "worker-3")
	assert.False(t, sum.failed())
	assert.Equal(t, 1, sum.takenOver)
	assert.Equal(t, 1, sum.victimRunning)
	assert.Zero(t, sum.again)
	assert.ElementsMatch(t, []time.Duration{time.Millisecond, 3 * time.Millisecond}, sum.onTime)
	assert.Equal(t, []time.Duration{4 * time.Second}, sum.late)
	assert.Contains(t, printed(sum), "every task ran, and none was completed twice")
}

func TestALostTaskFailsTheRun(t *testing.T) {
	a := ran("worker-1", "a", 1, 0)
	for name, sum := range map[string]summary{
		"not done in the store":                summarize(2, 1, together(a, ran("worker-1", "b", 1, 0)), "worker-3"),
		"done in the store, but nobody ran it": summarize(2, 2, a, "worker-3"),
		"begun and never finished":             summarize(2, 2, together(a, ran("worker-1", "b", 1, 0)[:1]), "worker-3"),
	} {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, 1, sum.lost)
			assert.True(t, sum.failed())
			assert.Regexp(t, `(?m)^  lost +1 `, printed(sum))
			assert.Contains(t, printed(sum), "FAILED")
		})
	}
}

func TestATaskThatRanTwiceFailsTheRun(t *testing.T) {
	a := ran("worker-1", "a", 1, 0)
	for name, records := range map[string][]record{
		"two runs under one token, one finished": together(a, ran("worker-2", "a", 1, 0)[:1]),
		"two accepted completions":               together(a, ran("worker-2", "a", 2, 0)),
		"both":                                   together(a, a),
	} {
		t.Run(name, func(t *testing.T) {
			sum := summarize(1, 1, records, "worker-3")
			assert.Equal(t, 1, sum.twice)
			assert.True(t, sum.failed())
			assert.Regexp(t, `(?m)^  ran twice +1 `, printed(sum))
			assert.Contains(t, printed(sum), "FAILED")
		})
	}
}

// A worker may die between a handler's end and its record in the store: at least
// once, not exactly once.
func TestARunThatWasNotRecordedMayBeRepeated(t *testing.T) {
	sum := summarize(1, 1, together(
		ran("worker-3", "a", 1, 0)[:2], // finished, not accepted
		takenOver(ran("worker-1", "a", 2, 4*time.Second)),
	), "worker-3")
	assert.False(t, sum.failed())
	assert.Equal(t, 1, sum.takenOver)
	assert.Equal(t, 1, sum.again)
	assert.Zero(t, sum.victimRunning)
	assert.Empty(t, sum.onTime, "its first run is not what counts")
}

func TestRecordsSurviveATornLastLine(t *testing.T) {
	path := filepath.Join(t.TempDir(), "w.records")
	f, err := createRecords(path, "worker-1")
	require.NoError(t, err)
	for _, r := range ran("", "a", 1, time.Millisecond) {
		require.NoError(t, f.append(r))
	}
	f.close()
	whole, err := readRecords(path)
	require.NoError(t, err)
	assert.Equal(t, ran("worker-1", "a", 1, time.Millisecond), whole)
	assert.Zero(t, running(whole))
	assert.Equal(t, 1, running(whole[:1]))

	data, err := os.ReadFile(path)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(path, data[:len(data)-3], 0o600))
	torn, err := readRecords(path)
	require.NoError(t, err)
	assert.Equal(t, whole[:2], torn)

	require.NoError(t, os.WriteFile(path, append([]byte("{\n"), data...), 0o600))
	_, err = readRecords(path)
	assert.ErrorContains(t, err, "w.records:1:", "a broken line in the middle is no torn one")
}
