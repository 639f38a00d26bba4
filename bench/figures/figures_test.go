package figures_test

import (
	"bytes"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/dueclaim/dueclaim/bench/figures"
)

func TestSampleOrdersItsValues(t *testing.T) {
	s := figures.Sample{9, 1, 5}
	assert.Equal(t, []float64{5, 1, 9}, []float64{s.Median(), s.Min(), s.Max()})
	assert.Equal(t, figures.Sample{9, 1, 5}, s, "it stays in the order of the rounds")
	assert.Equal(t, 3.0, figures.Sample{1, 2, 4, 100}.Median(), "the mean of the two middle ones")
	for _, v := range []float64{figures.Sample(nil).Median(), figures.Sample(nil).Min(), figures.Sample(nil).Max(), figures.Percentile(nil, 50)} {
		assert.True(t, math.IsNaN(v), "of nothing there is no figure")
	}
}

func TestPercentileIsTheNearestRank(t *testing.T) {
	hundred := make([]float64, 100)
	for i := range hundred {
		hundred[i] = float64(i + 1)
	}
	for p, want := range map[float64]float64{0: 1, 1: 1, 50: 50, 99: 99, 99.5: 100, 100: 100} {
		assert.Equal(t, want, figures.Percentile(hundred, p), "p%v", p)
	}
	assert.Equal(t, 7.0, figures.Percentile([]float64{7}, 99))
	assert.Equal(t, 2.0, figures.Percentile([]float64{1, 2, 3}, 50))
}

func TestRoundKeepsFourDigits(t *testing.T) {
	for v, want := range map[float64]float64{123456: 123500, -0.00123456: -0.001235, 0: 0, 42: 42} {
		assert.Equal(t, want, figures.Round(v))
	}
}

func TestResultsSurviveTheirFile(t *testing.T) {
	r := &figures.Results{Workloads: []figures.Run{{Name: "drain", Command: "go run .", Rounds: 2}, {Name: "idle"}}}
	r.Add("drain", "kept", "river", "rate", 12345.678)
	r.Add("drain", "kept", "river", "rate", 11000)
	r.Add("idle", "idle", "river", "cpu", 3)
	assert.Equal(t, figures.Sample{12350, 11000}, r.Get("drain", "kept", "river", "rate"))
	assert.Empty(t, r.Get("drain", "kept", "asynq", "rate"))

	var text bytes.Buffer
	require.NoError(t, r.Encode(&text))
	require.True(t, json.Valid(text.Bytes()), "%s", text.String())
	path := filepath.Join(t.TempDir(), "figures.json")
	require.NoError(t, os.WriteFile(path, text.Bytes(), 0o600))
	again, err := figures.Read(path)
	require.NoError(t, err)
	assert.Equal(t, r, again)

	again.Forget("drain")
	assert.Nil(t, again.Run("drain"))
	assert.Empty(t, again.Get("drain", "kept", "river", "rate"))
	assert.NotNil(t, again.Run("idle"), "others stay")
	assert.Equal(t, figures.Sample{3}, again.Get("idle", "idle", "river", "cpu"))
}

func TestResultsWithoutRecordsAreValid(t *testing.T) {
	var text bytes.Buffer
	require.NoError(t, new(figures.Results).Encode(&text))
	assert.True(t, json.Valid(text.Bytes()), "%s", text.String())
}

func TestReadNamesABrokenFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "figures.json")
	require.NoError(t, os.WriteFile(path, []byte("{"), 0o600))
	_, err := figures.Read(path)
	assert.ErrorContains(t, err, path)
}
