package mysqlclaim

import (
	"github.com/dueclaim/dueclaim/core"
)

// heldGuard holds for a row that runs under the very grant in v.
const heldGuard = "b.status = 'running' AND b.token = v.token AND b.holder = v.holder"

// maxFences is how many different tokens and holders held spells out. The server
// compares each row with all of them.
const maxFences = 32

// fence is what the grants of some ids have in common: a claim gives its ids one
// holder, and ids that were inserted together mostly have one token.
type fence struct {
	token  int64
	holder string
}

// held is the condition that a row runs under its very grant of the items: heldGuard
// without a table of literals, which is more to read for the server. It is nil where
// the items have too many tokens and holders for that.
func held[T any](items []item[T], grant func(T) core.Grant) func(*text) {
	groups := map[fence][]item[T]{}
	var order []fence
	for _, it := range items {
		g := grant(it.v)
		f := fence{g.Token, g.Holder}
		if _, ok := groups[f]; !ok {
			if len(order) == maxFences {
				return nil
			}
			order = append(order, f)
		}
		groups[f] = append(groups[f], it)
	}
	return func(t *text) {
		t.sql("status = 'running' AND (")
		for i, f := range order {
			if i > 0 {
				t.sql(" OR ")
			}
			t.sql("token = ").int(f.token).sql(" AND holder = ").val(f.holder).sql(" AND id IN (")
			idList(groups[f], func(v T) core.ID { return grant(v).ID })(t)
			t.sql(")")
		}
		t.sql(")")
	}
}

// byGrants is the derived table of the ids of rows that run under their very grant
// of the items and for which guard holds, which is empty or begins with AND.
func byGrants[T any](s *Store, items []item[T], grant func(T) core.Grant, guard string, r runner) *text {
	if where := held(items, grant); where != nil {
		return s.picked("id", func(t *text) {
			where(t)
			t.sql(guard)
		}, len(items), r)
	}
	values := table(items, []string{"id", "token", "holder"}, func(v T, next func() *text) {
		g := grant(v)
		next().val(string(g.ID))
		next().int(g.Token)
		next().val(g.Holder)
	})
	return s.byValues("b.id", values, heldGuard+guard, len(items), r)
}

// setByGrants changes the rows of byGrants.
func setByGrants[T any](s *Store, items []item[T], grant func(T) core.Grant, guard, set string, r runner) *text {
	if where := held(items, grant); where != nil && r.direct {
		t := s.directly().sql(set, " WHERE queue = ").val(s.queue).sql(" AND ")
		where(t)
		return t.sql(guard)
	}
	return s.update(byGrants(s, items, grant, guard, r)).sql(set)
}
