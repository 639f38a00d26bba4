package wireproxy

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func needle(c counter) string {
	if c.proxy.protocol == Redis {
		return "incr"
	}
	return "UPDATE counters"
}

func TestEachCutBreaksOneExchangeAtItsPoint(t *testing.T) {
	onEach(t, func(t *testing.T, c counter) {
		value := c.value()
		for _, cut := range Cuts() {
			f := Fault{Cut: cut}
			if cut == ErrorReply {
				f = c.refusal
			}
			f.Needle = needle(c)
			require.NoError(t, c.add(t.Context()), "the connection stands and the statement is known")
			value++
			c.proxy.Arm(f)
			require.NoError(t, c.read(t.Context()), "another request passes")
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			if cut == Stall {
				ctx, cancel = context.WithTimeout(t.Context(), 150*time.Millisecond)
			}
			began := time.Now()
			err := c.add(ctx)
			cancel()
			require.Error(t, err, cut)
			if cut == Stall {
				assert.GreaterOrEqual(t, time.Since(began), 140*time.Millisecond, "%v", err)
			}
			switch cut {
			case BeforeRequest, HalfRequest:
			case AfterRequest:
				soon(t, "the effect comes", func() bool { return c.value() == value+1 })
				value++
			case ErrorReply:
				c.refused(t, err)
				value++
			default:
				value++
			}
			assert.Equal(t, value, c.value(), "%s: the effect", cut)
			assert.Equal(t, 1, c.proxy.Injected()[cut], cut)
			assert.Zero(t, c.proxy.Disarm())
			require.Eventually(t, func() bool { return c.read(t.Context()) == nil }, 10*time.Second, time.Millisecond, "%s: it goes on", cut)
		}
		require.NoError(t, c.add(t.Context()))
		assert.Equal(t, value+1, c.value(), "nothing came late")
	})
}

func TestAFaultWaitsForItsTurn(t *testing.T) {
	onEach(t, func(t *testing.T, c counter) {
		value := c.value()
		c.proxy.Arm(Fault{Cut: EffectThenCut, Needle: "never sent"})
		c.proxy.Arm(Fault{Cut: BeforeRequest, Needle: needle(c), Skip: 2})
		require.NoError(t, c.add(t.Context()))
		require.NoError(t, c.add(t.Context()))
		require.Error(t, c.add(t.Context()))
		require.NoError(t, c.add(t.Context()))
		assert.Equal(t, value+3, c.value())
		assert.Equal(t, 1, c.proxy.Disarm(), "left")
		assert.Equal(t, map[Cut]int{BeforeRequest: 1}, c.proxy.Injected())
		before := c.proxy.Exchanges()
		c.proxy.Each(func([]byte) Fault { return Fault{Cut: EffectThenCut} })
		require.Error(t, c.add(t.Context()))
		c.proxy.Each(nil)
		assert.Equal(t, value+4, c.value())
		assert.Equal(t, 1, c.proxy.Exchanges()-before)
	})
}

func TestTheLineCanBeDownFrozenAndSlow(t *testing.T) {
	onEach(t, func(t *testing.T, c counter) {
		value := c.value()
		c.proxy.Refuse(true)
		assert.Equal(t, 1, c.proxy.DropAll())
		soon(t, "the connection goes", func() bool { return c.proxy.DropAll() == 0 })
		require.Error(t, c.add(t.Context()), "refused")
		c.proxy.Refuse(false)
		soon(t, "it is well again", func() bool { return c.read(t.Context()) == nil })
		assert.Equal(t, value, c.value())

		thaw := c.proxy.Freeze()
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		began := time.Now()
		require.Error(t, c.add(ctx))
		assert.GreaterOrEqual(t, time.Since(began), 90*time.Millisecond, "it waited in vain")
		cancel()
		assert.Equal(t, value, c.value(), "nothing passes")
		thaw()
		soon(t, "it is well again", func() bool { return c.read(t.Context()) == nil })
		if c.proxy.protocol == Redis { // elsewhere it may have waited at its preparation, or be cancelled
			soon(t, "what was on its way goes on", func() bool { return c.value() == value+1 })
		}

		c.proxy.Delay(100 * time.Millisecond)
		began = time.Now()
		require.NoError(t, c.read(t.Context()))
		assert.GreaterOrEqual(t, time.Since(began), 100*time.Millisecond)
	})
}

func TestATestEndsWhateverItsConnectionsDo(t *testing.T) {
	var late error
	done := make(chan struct{})
	t.Run("inner", func(t *testing.T) {
		c := onRedis(3)(t)
		require.NoError(t, c.add(t.Context()))
		c.proxy.Freeze()
		go func() {
			defer close(done)
			late = c.add(context.Background())
		}()
		soon(t, "it is under way", func() bool {
			c.proxy.mu.Lock()
			defer c.proxy.mu.Unlock()
			return len(c.proxy.conns) == 1
		})
	})
	<-done
	require.Error(t, late)
	assert.False(t, errors.Is(late, context.DeadlineExceeded))
}
