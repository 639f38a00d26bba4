package conformance

import (
	"context"

	"github.com/dueclaim/dueclaim/core"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// detects tells whether a handle is a Detector that can tell: a decorator may have
// the method and nothing behind it.
func detects(ctx context.Context, idx core.TimeIndex) bool {
	d, ok := idx.(core.Detector)
	if !ok {
		return false
	}
	name, err := d.Generation(ctx)
	return name != "" || err != nil
}

func (e *indexEnv) generation(idx core.TimeIndex) string {
	name, err := idx.(core.Detector).Generation(e.ctx)
	require.NoError(e, err, "Generation")
	require.NotEmpty(e, name, "Generation of an index that is well")
	return name
}

var indexLosses = []testCase[*indexEnv]{
	{
		name: "losses/stays", needs: "Detector",
		rule: "Generation names the same while entries are added, moved and removed and none was lost.",
		run: func(e *indexEnv) {
			e.add(core.Entry{ID: "stays", Due: at(99)})
			was := [...]string{e.generation(e.idx), e.generation(e.peer)}
			same := func(after string) {
				assert.Equal(e, was, [...]string{e.generation(e.idx), e.generation(e.peer)}, "after %s", after)
			}
			same("nothing")
			e.add(core.Entry{ID: "a", Due: at(1)}, core.Entry{ID: "b", Due: at(2)})
			same("an Add")
			e.move(core.Move{ID: "a", From: at(1), To: at(3)})
			same("a Move")
			e.remove(core.Entry{ID: "a", Due: at(3)}, core.Entry{ID: "b", Due: at(2)})
			same("a Remove")
		},
	},
	{
		name: "losses/lost", needs: "Detector Lose",
		rule: "After any number of entries were lost Generation names another generation, for each handle, and stays with it while the index is filled again.",
		run: func(e *indexEnv) {
			for range 3 {
				e.add(standing(manyIDs("n", 20), at(5))...)
				names := func() [2]string { return [2]string{e.generation(e.idx), e.generation(e.peer)} }
				was := names()
				e.lose()
				assert.Empty(e, e.all(), "conformance.Index.Lose lost all entries")
				now := names()
				assert.NotEqual(e, was[0], now[0], "after the loss")
				assert.NotEqual(e, was[1], now[1], "after the loss, by another handle")
				e.add(standing(manyIDs("n", 20), at(5))...)
				assert.Equal(e, now, names(), "after the index was filled again")
			}
		},
	},
	{
		name: "losses/done-ctx", needs: "Detector",
		rule: "With a ctx that is already done Generation returns an error and no name.",
		run: func(e *indexEnv) {
			name, err := e.idx.(core.Detector).Generation(done())
			assert.Error(e, err, "Generation")
			assert.Empty(e, name, "Generation")
		},
	},
}
