package mysqlclaim

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/dueclaim/dueclaim/claim"
	"github.com/dueclaim/dueclaim/core"
)

// smallDef is a table in mode Full whose due time is only read.
func smallDef(name string, kind claim.IDKind) claim.Table {
	return claim.Table{
		Name: name, ID: claim.IDColumn{Name: "id", Kind: kind},
		State: claim.StateColumn{
			Name: "state", Pending: claim.Text("new"), Processing: claim.Text("at work"), Done: claim.Text("é done"),
		},
		Due:   claim.DueTime{Base: claim.TimeColumn{Name: "born"}},
		Token: "token", Holder: "holder", Lease: claim.TimeColumn{Name: "lease"}, LastError: "failure",
	}
}

const smallTable = `CREATE TABLE %s (
	id $type NOT NULL UNIQUE,
	state VARCHAR(20) CHARACTER SET latin1 NOT NULL DEFAULT 'new',
	token BIGINT NOT NULL DEFAULT 0,
	holder VARCHAR(64) CHARACTER SET latin1 NOT NULL DEFAULT '',
	lease BIGINT NULL,
	born BIGINT NOT NULL DEFAULT 0,
	failure TEXT CHARACTER SET latin1,
	KEY sweep (state, born, id)
)`

func (f fixture) small(t *testing.T, name, idType string, kind claim.IDKind, ids ...string) *Table {
	t.Helper()
	f.make(t, smallTable, name, "$type", idType)
	if len(ids) > 0 {
		f.exec(t, "INSERT INTO "+name+" (id) VALUES ("+strings.Join(ids, "), (")+")")
	}
	return newTable(t, f.db, smallDef(name, kind))
}

func answers(t *testing.T, table *Table, lease core.Lease, ids ...core.ID) string {
	t.Helper()
	got, err := table.Claim(t.Context(), ids, lease)
	require.NoError(t, err)
	words := make([]string, len(got))
	for i, c := range got {
		assert.Equal(t, ids[i], c.ID)
		words[i] = c.Verdict.String()
	}
	return strings.Join(words, " ")
}

func waiting(t *testing.T, table *Table, now time.Time) (ids []core.ID) {
	t.Helper()
	var after core.Entry
	for {
		page, err := table.Waiting(t.Context(), now, after, endOfTime, 2)
		require.NoError(t, err)
		for _, e := range page {
			ids = append(ids, e.ID)
		}
		if len(page) < 2 {
			return ids
		}
		after = page[1]
	}
}

func TestIDsOfEachKindGoThroughTheirWholeLife(t *testing.T) {
	const a, b, c = "0192f0c1-2b3c-7d4e-8f50-0123456789ab", "ffffffff-2b3c-7d4e-8f50-0123456789ab", "00000000-0000-0000-0000-000000000001"
	raw := func(id string) string { return "x'" + strings.ReplaceAll(id, "-", "") + "'" }
	quoted := func(id string) string { return "'" + id + "'" }
	plain := func(id string) string { return id }
	onEach(t, func(t *testing.T, be backend) {
		f := newFixture(t, be)
		for i, x := range []struct {
			idType string
			kind   claim.IDKind
			sql    func(string) string
			ids    []core.ID
			only   string
		}{
			{"BIGINT", claim.IntegerID, plain, []core.ID{"-5", "7", "9223372036854775807"}, ""},
			{"SMALLINT UNSIGNED", claim.IntegerID, plain, []core.ID{"0", "7", "65535"}, ""},
			{"CHAR(36)", claim.UUIDID, quoted, []core.ID{c, a, b}, ""},
			{"VARBINARY(36)", claim.UUIDID, quoted, []core.ID{c, a, b}, ""},
			{"BINARY(16)", claim.BinaryUUIDID, raw, []core.ID{c, a, b}, ""},
			{"UUID", claim.UUIDID, quoted, []core.ID{c, a, b}, "store:mariadb"},
			{"VARCHAR(20) CHARACTER SET latin1", claim.TextID, quoted, []core.ID{"7", "a b", "ü"}, ""},
			{"VARCHAR(20) CHARACTER SET utf8mb3", claim.TextID, quoted, []core.ID{"7", "a b", "日本"}, ""},
			{"VARCHAR(20) CHARACTER SET utf16", claim.TextID, quoted, []core.ID{"7", "a b", "日本"}, ""},
			{"VARBINARY(20)", claim.TextID, quoted, []core.ID{"7", "a b", "日本"}, ""},
			{"CHAR(20)", claim.TextID, quoted, []core.ID{"7", "a b", "c"}, ""},
			{"VARCHAR(20) CHARACTER SET cp1251", claim.TextID, quoted, []core.ID{"7", "a b", "я"}, ""},
		} {
			if x.only != "" && x.only != be.name {
				continue
			}
			t.Run(x.idType, func(t *testing.T) {
				t.Attr("dueclaim.backend", be.name)
				var rows []string
				for _, id := range x.ids {
					rows = append(rows, x.sql(string(id)))
				}
				table := f.small(t, fmt.Sprintf("ids%d", i), x.idType, x.kind, rows...)
				found := verify(t, f.db, table.def)
				_, ok := find(found, "column-type", "id")
				assert.False(t, ok, "\n%s", found)

				assert.ElementsMatch(t, x.ids, waiting(t, table, base))
				got, err := table.Claim(t.Context(), x.ids, leaseOf("it's \\", base))
				require.NoError(t, err)
				var settlements []core.Settlement
				for k, c := range got {
					require.Equal(t, core.Granted, c.Verdict, "%s: %v", c.ID, c.Err)
					require.NoError(t, table.Extend(t.Context(), []core.Grant{c.Grant}, at(60_000)))
					settlements = append(settlements, core.Settlement{Grant: c.Grant, Outcome: []core.Outcome{core.Done, core.Retry, core.Retry}[k], Due: at(500), Err: "it's \\ 日"})
				}
				assert.Equal(t, "Held Held Held", answers(t, table, leaseOf("other", at(59_000)), x.ids...))
				require.NoError(t, table.Settle(t.Context(), at(1), settlements))
				require.NoError(t, table.Settle(t.Context(), at(1), settlements), "a repeat")
				assert.Equal(t, "Gone NotDue NotDue", answers(t, table, leaseOf("other", at(499)), x.ids...), "backing off")
				assert.Equal(t, "Gone Granted Granted", answers(t, table, leaseOf("other", at(500)), x.ids...))
				var failure string
				require.NoError(t, f.db.QueryRow("SELECT failure FROM "+table.quoted+" WHERE state = 'at work' LIMIT 1").Scan(&failure))
				assert.Equal(t, "it's \\ ?", failure, "as far as the column's character set goes")
			})
		}
	})
}

func TestAnotherSpellingOfAnIDIsAnotherID(t *testing.T) {
	onEach(t, func(t *testing.T, b backend) {
		f := newFixture(t, b)
		for i, idType := range []string{"VARCHAR(20) CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci", "VARCHAR(20) CHARACTER SET latin1", "CHAR(20) CHARACTER SET utf8mb4"} {
			table := f.small(t, fmt.Sprintf("spelled%d", i), idType, claim.TextID, "'Abc'", "'x'", "'?'")
			assert.Equal(t, "Gone Gone Gone Gone Granted", answers(t, table, leaseOf("h", base), "abc", "ABC", "Äbc", "日", "Abc"), idType)
			assert.Equal(t, "Granted", answers(t, table, leaseOf("h", base), "x"))
			got, err := table.Claim(t.Context(), []core.ID{"Abc", "x"}, leaseOf("h", base))
			require.NoError(t, err)
			for _, wrong := range []core.ID{"abc", "ABC", "日"} {
				g := core.Grant{ID: wrong, Token: got[0].Grant.Token, Holder: "h"}
				require.ErrorIs(t, table.Extend(t.Context(), []core.Grant{g}, at(99_000)), core.ErrLeaseLost)
				more := []core.Settlement{{Grant: g, Outcome: core.Done}, {Grant: got[1].Grant, Outcome: core.Released, Due: at(1)}}
				require.ErrorIs(t, table.Settle(t.Context(), at(1), more[:1]), core.ErrLeaseLost)
				require.ErrorIs(t, table.Settle(t.Context(), at(1), more), core.ErrLeaseLost, "with another")
			}
			assert.Equal(t, core.Held, mustClaim(t, table, "Abc").Verdict)
		}
	})
}

func mustClaim(t *testing.T, table *Table, id core.ID) core.Claimed {
	t.Helper()
	got, err := table.Claim(t.Context(), []core.ID{id}, leaseOf("somebody", base))
	require.NoError(t, err)
	return got[0]
}

func TestAMalformedIDIsRefusedAndNeverSent(t *testing.T) {
	onEach(t, func(t *testing.T, b backend) {
		f := newFixture(t, b)
		table := f.small(t, "numbers", "INT", claim.IntegerID, "0", "123")
		got, err := table.Claim(t.Context(), []core.ID{"123abc", "0123", "abc", "", "123"}, leaseOf("h", base))
		require.NoError(t, err)
		for _, c := range got[:4] {
			assert.Equal(t, core.Refused, c.Verdict, c.ID)
			require.ErrorIs(t, c.Err, core.ErrInvalid)
		}
		assert.Equal(t, core.Granted, got[4].Verdict)
		require.ErrorIs(t, table.CheckID("0123"), core.ErrInvalid)
	})
}

// A row whose state is spelled in another way is what the server takes it for.
func TestAStateIsWhatTheColumnTakesForEqual(t *testing.T) {
	onEach(t, func(t *testing.T, b backend) {
		f := newFixture(t, b)
		table := f.small(t, "shouted", "INT", claim.IntegerID, "1", "2", "3")
		f.exec(t, "UPDATE shouted SET state = 'NEW' WHERE id = 1")
		f.exec(t, "UPDATE shouted SET state = 'É Done' WHERE id = 2")
		assert.Equal(t, "Granted Gone Granted", answers(t, table, leaseOf("h", base), "1", "2", "3"))
		f.exec(t, "UPDATE shouted SET state = 'AT WORK'")
		assert.Equal(t, "Held Refused Held", answers(t, table, leaseOf("h2", base), "1", "2", "3"), "the second has no lease")
	})
}

func TestClaimsOfManyContendersHaveOneWinnerEach(t *testing.T) {
	onEach(t, func(t *testing.T, b backend) {
		f := newFixture(t, b)
		var rows []string
		var ids []core.ID
		for i := range 300 {
			rows, ids = append(rows, fmt.Sprint(i)), append(ids, core.ID(fmt.Sprint(i)))
		}
		f.small(t, "contended", "INT", claim.IntegerID, rows...)
		wins := make(chan core.ID, 10*len(ids))
		t.Run("claims", func(t *testing.T) {
			for w := range 6 {
				t.Run(fmt.Sprint(w), func(t *testing.T) {
					t.Parallel()
					table := newTable(t, f.db, smallDef("contended", claim.IntegerID))
					mine := slices.Clone(ids)
					if w%2 == 1 {
						slices.Reverse(mine)
					}
					for part := range slices.Chunk(mine, 50) {
						got, err := table.Claim(t.Context(), part, leaseOf(fmt.Sprintf("holder %d", w), base))
						require.NoError(t, err)
						for _, c := range got {
							if c.Verdict == core.Granted {
								wins <- c.ID
							}
						}
					}
				})
			}
		})
		close(wins)
		seen := map[core.ID]int{}
		for id := range wins {
			seen[id]++
		}
		assert.Len(t, seen, len(ids))
		for id, n := range seen {
			assert.Equal(t, 1, n, "winners of %s", id)
		}
	})
}
