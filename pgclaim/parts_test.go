package pgclaim

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/dueclaim/dueclaim/core"
)

// A row of a child stands at the same place (ctid) as one of the parent.
func TestATableThatIsGivenChildrenLaterKeepsItsGuards(t *testing.T) {
	eachDriver(t, func(t *testing.T, d driver) {
		for _, deletes := range []bool{false, true} {
			s := d.migrated(t, Options{DeleteFinished: deletes})
			ids := []core.ID{"a", "b", "c"}
			for _, id := range ids {
				require.NoError(t, s.Insert(t.Context(), call("c"+string(id)), []core.Task{task(string(id), 0)}))
			}
			s.exec(t, "CREATE TABLE child () INHERITS (dueclaim_tasks)")
			s.exec(t, "INSERT INTO child SELECT (jsonb_populate_record(NULL::child, to_jsonb(t) || jsonb_build_object('id', 'child of ' || id))).* FROM ONLY dueclaim_tasks AS t ORDER BY id")
			require.Equal(t, []string{"3"}, s.text(t, "SELECT count(*)::text FROM child JOIN ONLY dueclaim_tasks AS t ON t.ctid = child.ctid"), "the test needs equal places")
			children := s.text(t, "SELECT t::text FROM child AS t ORDER BY id")

			warnings, err := s.CheckSetup(t.Context())
			require.NoError(t, err)
			assert.Contains(t, fmt.Sprint(warnings), "dueclaim_tasks is partitioned, has tables that inherit from it")
			grants := make([]core.Grant, len(ids))
			claimed, err := s.Claim(t.Context(), ids, lease("h", 0))
			require.NoError(t, err)
			for i, c := range claimed {
				require.Equal(t, core.Granted, c.Verdict)
				grants[i] = c.Grant
			}
			require.NoError(t, s.Extend(t.Context(), grants, at(60)))
			require.NoError(t, s.Settle(t.Context(), at(1), []core.Settlement{
				{Grant: grants[0], Outcome: core.Done}, {Grant: grants[1], Outcome: core.Retry, Due: at(9)}, {Grant: grants[2], Outcome: core.DeadLetter},
			}))
			assert.Equal(t, children, s.text(t, "SELECT t::text FROM child AS t ORDER BY id"), "nobody asked for these")
			claimed, err = s.Claim(t.Context(), []core.ID{"child of a"}, lease("h2", 0))
			require.NoError(t, err)
			assert.Equal(t, core.Refused, claimed[0].Verdict, "a row of a child is refused, not lost")
			s.exec(t, "DROP TABLE child")
		}
	})
}

// Another tool has put a partitioned table into the place of the plain one.
func TestATableThatBecomesPartitionedIsRefused(t *testing.T) {
	eachDriver(t, func(t *testing.T, d driver) {
		s := d.migrated(t, Options{})
		s.exec(t, "ALTER TABLE dueclaim_tasks RENAME TO plain")
		s.exec(t, "CREATE TABLE dueclaim_tasks (LIKE plain INCLUDING ALL) PARTITION BY HASH (id)")
		for i := range 2 {
			s.exec(t, fmt.Sprintf("CREATE TABLE part%d PARTITION OF dueclaim_tasks FOR VALUES WITH (MODULUS 2, REMAINDER %d)", i, i))
		}
		in, ids := tasks(20)
		require.NoError(t, s.Insert(t.Context(), call("c"), in))
		claimed, err := s.Claim(t.Context(), ids[:10], lease("h", 0))
		require.NoError(t, err)
		for _, c := range claimed {
			require.Equal(t, core.Refused, c.Verdict)
		}
		assert.Equal(t, []string{"20"}, s.text(t, "SELECT count(*)::text FROM dueclaim_tasks WHERE status = 'pending'"))
		warnings, err := s.CheckSetup(t.Context())
		require.NoError(t, err)
		assert.Contains(t, fmt.Sprint(warnings), "dueclaim_tasks is partitioned")
		require.ErrorContains(t, s.Migrate(t.Context()), "dueclaim_tasks is partitioned")
	})
}

// What is deleted is deleted last: a repeat can recognise what was written, but not what
// is gone.
func TestAHalfOfASettlementIsNotTakenForALostLease(t *testing.T) {
	eachDriver(t, func(t *testing.T, d driver) {
		for _, refused := range []string{"UPDATE", "DELETE"} {
			s := d.migrated(t, Options{DeleteFinished: true})
			require.NoError(t, s.Insert(t.Context(), call("c"), []core.Task{task("done", 0), task("retried", 0)}))
			claimed, err := s.Claim(t.Context(), []core.ID{"done", "retried"}, lease("h", 0))
			require.NoError(t, err)
			settlements := []core.Settlement{
				{Grant: claimed[0].Grant, Outcome: core.Done}, {Grant: claimed[1].Grant, Outcome: core.Retry, Due: at(9)},
			}
			s.exec(t, `CREATE FUNCTION no() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE lock_not_available; END $$`)
			s.exec(t, "CREATE TRIGGER no BEFORE "+refused+" ON dueclaim_tasks FOR EACH ROW EXECUTE FUNCTION no()")
			require.Error(t, s.Settle(t.Context(), at(1), settlements))
			s.exec(t, "DROP TRIGGER no ON dueclaim_tasks")
			require.NoError(t, s.Settle(t.Context(), at(1), settlements), "after a failed %s", refused)
			assert.Equal(t, []string{"retried pending"}, s.text(t, "SELECT id || ' ' || status FROM dueclaim_tasks"))
		}
	})
}
