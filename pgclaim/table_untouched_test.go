package pgclaim

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dueclaim/dueclaim/claim"
	"github.com/dueclaim/dueclaim/internal/tabletest"
	"github.com/dueclaim/dueclaim/internal/testserver"
)

// A table with a status and updated_at alone, as frameworks make them.
func TestATableOfStatusAndLastChangeAlone(t *testing.T) {
	url := testserver.Postgres(t)
	for i, c := range []struct {
		driver driver
		column string
		kind   claim.TimeColumn
		touch  string
	}{
		{native, "timestamptz NOT NULL DEFAULT now()", withZone, ""}, // a trigger keeps it
		{standard, "timestamp NOT NULL", withoutZone, ", updated_at = now() AT TIME ZONE 'UTC'"},
		{native, "bigint NOT NULL", claim.TimeColumn{}, ", updated_at = (1000 * extract(epoch FROM now()))::bigint"},
	} {
		t.Run(c.column, func(t *testing.T) {
			t.Attr("dueclaim.backend", c.driver.backend())
			s := c.driver.open(t, url, Options{})
			name := fmt.Sprint("common", i)
			s.exec(t, "CREATE TABLE "+name+" (order_id varchar(50) PRIMARY KEY, status text NOT NULL, updated_at "+c.column+")")
			s.exec(t, "CREATE INDEX ON "+name+" (status, updated_at)")
			if c.touch == "" {
				s.exec(t, "CREATE FUNCTION touch() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN NEW.updated_at = now(); RETURN NEW; END'")
				s.exec(t, "CREATE TRIGGER touch BEFORE UPDATE ON "+name+" FOR EACH ROW EXECUTE FUNCTION touch()")
			}
			table := s.onTable(t, tabletest.Untouched(name, c.kind))
			found, err := table.Verify(t.Context())
			require.NoError(t, err)
			tabletest.TestUntouched(t, tabletest.Handle{
				Claimer: table, Name: name,
				Exec: func(t *testing.T, query string) int64 { return s.count(t, query) },
				Text: func(t *testing.T, query string) string { return s.text(t, query)[0] },
				Literal: func(c claim.TimeColumn, value int64) string {
					if c.Integer() {
						return fmt.Sprint(value)
					}
					return "'" + instant(c, value) + "'"
				},
				Transition: table.step,
			}, c.kind, found, c.touch)
		})
	}
}
