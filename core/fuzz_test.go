package core_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/dueclaim/dueclaim/core"
)

// FuzzID: what Check lets pass keeps the rules that backends build on, told here in
// another way; what it refuses breaks one of them, and is said in few words.
func FuzzID(f *testing.F) {
	for _, id := range []string{
		"", "a", "A-17", "it's", `a\b`, "größe", "日本😀", " a", "a ", "a\u00a0", "\u2003a", "a\x00b", "a\nb", "a\u0085b", "\x7f",
		"\xff", "a\xc3", "\xed\xa0\x80", strings.Repeat("x", 255), strings.Repeat("x", 256), strings.Repeat("é", 128),
		"'; DROP TABLE dueclaim_tasks; --", "\ufeffbom", "e\u0301", "\u202eright to left",
	} {
		f.Add(id)
	}
	f.Fuzz(func(t *testing.T, s string) {
		good := s != "" && len(s) <= core.MaxIDBytes && utf8.ValidString(s)
		for i, r := range s {
			edge := i == 0 || i+utf8.RuneLen(r) == len(s)
			good = good && !unicode.IsControl(r) && !(edge && unicode.IsSpace(r))
		}
		err := core.ID(s).Check()
		require.Equal(t, good, err == nil, "%q: %v", s, err)
		if err != nil {
			require.ErrorIs(t, err, core.ErrInvalid)
			require.LessOrEqual(t, len(err.Error()), 12*core.MaxIDBytes, "a hostile id doesn't fill the log")
			require.True(t, utf8.ValidString(err.Error()))
			require.NotContains(t, err.Error(), "\n", "nor does it begin lines of its own there")
			return
		}
		b, err := json.Marshal(core.ID(s))
		require.NoError(t, err)
		var back core.ID
		require.NoError(t, json.Unmarshal(b, &back))
		require.Equal(t, core.ID(s), back)
	})
}

// FuzzDue: a due time that is let pass is a whole millisecond of the range once it
// is rounded up, never before what was asked for.
func FuzzDue(f *testing.F) {
	f.Add(int64(0), int64(0))
	f.Add(int64(-1), int64(999_999_999))
	f.Add(int64(-1), int64(999_000_001))
	f.Add(int64(253402300799), int64(999_000_000))
	f.Add(int64(253402300799), int64(999_000_001))
	f.Add(int64(-62135596800), int64(0))
	f.Add(int64(1)<<62, int64(1))
	f.Fuzz(func(t *testing.T, sec, nsec int64) {
		due := time.Unix(sec, nsec)
		if core.CheckDue(due) != nil {
			return
		}
		up, down := core.CeilMilli(due), core.FloorMilli(due)
		require.False(t, up.Before(due))
		require.False(t, down.After(due))
		require.Less(t, up.Sub(due), time.Millisecond)
		require.Less(t, due.Sub(down), time.Millisecond)
		require.True(t, up.Equal(time.UnixMilli(up.UnixMilli())), "whole milliseconds")
		require.GreaterOrEqual(t, up.UnixMilli(), int64(0))
		require.LessOrEqual(t, up.UnixMilli(), int64(253402300799999))
		require.Equal(t, up.UnixMilli(), int64(float64(up.UnixMilli())), "exact as a score")
	})
}

// FuzzStorableText: whatever an error says, what is stored of it fits every
// backend, and a text that fits is left alone.
func FuzzStorableText(f *testing.F) {
	f.Add("", 1)
	f.Add("it's \\ \x00 \xff", 1)
	f.Add("é", core.MaxErrorBytes)
	f.Add("\xf0\x9f", core.MaxErrorBytes)
	f.Add("a😀", core.MaxErrorBytes/5)
	f.Fuzz(func(t *testing.T, s string, times int) {
		s = strings.Repeat(s, max(0, min(times, core.MaxErrorBytes+1, 1+4*core.MaxErrorBytes/(1+len(s)))))
		got := core.StorableText(s)
		require.LessOrEqual(t, len(got), core.MaxErrorBytes)
		require.True(t, utf8.ValidString(got))
		require.NotContains(t, got, "\x00")
		require.Equal(t, got, core.StorableText(got), "a repeat changes nothing")
		if len(s) <= core.MaxErrorBytes && utf8.ValidString(s) && !strings.Contains(s, "\x00") {
			require.Equal(t, s, got)
		}
	})
}

// fuzzPayload has what handlers' types have, itself included.
type fuzzPayload struct {
	Text   string
	Number int64
	Share  float64
	Bytes  []byte
	When   time.Time
	Named  map[string]json.RawMessage
	List   []fuzzPayload
	Next   *fuzzPayload
	Any    any
}

// FuzzPayload: a handler made by core.Handle answers a payload that it can't read
// with an error that names the task; it never panics, and what it can read reaches
// the handler as encoding/json has it. Meta is opaque to it.
func FuzzPayload(f *testing.F) {
	for _, s := range []string{
		"", "null", "{}", "[]", `"x"`, "1e999", `{"Text":1}`, `{"Number":9223372036854775808}`, `{"Bytes":"!"}`, `{"When":"yesterday"}`,
		`{"Next":{"Next":{"Text":"deep"}},"List":[{},null]}`, `{"Text":"a","text":"b"}`, `{"Text":"\ud800"}`, "{\"Text\":\"\xff\"}", `{"a":1}x`,
		strings.Repeat("[", 20_000), strings.Repeat(`{"Next":`, 20_000), `{"Any":` + strings.Repeat("[", 9_990) + strings.Repeat("]", 9_990) + "}", "\x00", "\xef\xbb\xbf{}",
	} {
		f.Add([]byte(s), []byte(s))
	}
	f.Fuzz(func(t *testing.T, payload, meta []byte) {
		var mux core.Mux
		var got *fuzzPayload
		core.Handle(&mux, "typed", func(_ context.Context, _ *core.Job, p fuzzPayload) error {
			got = &p
			return nil
		})
		require.NoError(t, mux.Err())
		job := &core.Job{Task: core.Task{ID: "the id", Kind: "typed", Payload: payload, Meta: meta}}
		err := mux.Handle(t.Context(), job)
		var want fuzzPayload
		wantErr := json.Unmarshal(payload, &want)
		if wantErr == nil || len(payload) == 0 {
			require.NoError(t, err)
			require.NotNil(t, got)
			require.Equal(t, want, *got)
			return
		}
		require.Nil(t, got, "the handler isn't called with half a payload")
		require.ErrorContains(t, err, `"the id"`)
		for _, end := range []error{core.Settled, core.ErrLeaseLost, core.ErrDraining, core.ErrUnknownKind, context.Canceled} {
			require.False(t, errors.Is(err, end), "it is a failure as any other")
		}
		require.LessOrEqual(t, len(core.StorableText(err.Error())), core.MaxErrorBytes)
	})
}
