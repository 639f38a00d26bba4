package mysqlclaim

import (
	"database/sql"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// literalSeed makes TestLiteralsAreReadBackAsTheyAre repeat a run.
const literalSeed = "DUECLAIM_LITERAL_SEED"

// literalConnections are those under which a statement's text may mean something
// else: character sets in which a quote or a backslash can be the second byte of a
// character, or in which letters stand where ASCII has its brackets; and modes that
// change what quotes and backslashes are.
func literalConnections() (all []string) {
	for _, charset := range []string{"utf8mb4", "latin1", "gbk", "sjis", "big5", "cp932", "gb18030", "euckr", "swe7", "greek", "binary"} {
		for _, mode := range []string{"", "ANSI_QUOTES,NO_BACKSLASH_ESCAPES"} {
			all = append(all, "charset="+charset+"&sql_mode=%27"+mode+"%27")
		}
	}
	return append(all, "sql_mode=%27NO_BACKSLASH_ESCAPES%27", "sql_mode=%27ANSI_QUOTES%27", "charset=gbk&sql_mode=%27ANSI,TRADITIONAL,PIPES_AS_CONCAT%27&interpolateParams=false",
		"charset=sjis&multiStatements=true", "charset=gbk&character_set_connection=latin1", "charset=latin1&character_set_connection=gbk&character_set_results=sjis")
}

// TestLiteralsAreReadBackAsTheyAre: on real servers, under each connection, each
// value comes back in its very bytes, alone and among others in one statement.
func TestLiteralsAreReadBackAsTheyAre(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	if s := os.Getenv(literalSeed); s != "" {
		n, err := strconv.ParseUint(s, 10, 64)
		require.NoError(t, err)
		seed = n
	}
	t.Logf("%s=%d", literalSeed, seed)
	onEach(t, func(t *testing.T, b backend) {
		random := rand.New(rand.NewPCG(seed, 0))
		values := literalValues(random, 300)
		connections, read := literalConnections(), 0
		dsn := b.database(t)
		for _, connection := range connections {
			if b.name == "store:mariadb" && strings.Contains(connection, "gb18030") {
				connection = strings.ReplaceAll(connection, "gb18030", "gb2312") // MariaDB has no gb18030
			}
			db := open(t, dsn, connection)
			some := values
			if os.Getenv("DUECLAIM_STRESS") == "" { // a part under each connection, all of them under several
				random.Shuffle(len(values), func(i, j int) { values[i], values[j] = values[j], values[i] })
				some = values[:150]
			}
			for part := range slices.Chunk(some, 75) {
				stmt := new(text).sql("SELECT ")
				for i, v := range part {
					if i > 0 {
						stmt.sql(", ")
					}
					stmt.sql("HEX(").val(v).sql("), HEX(").hex([]byte(v)).sql(")")
					s := &statement{text: *stmt}
					s.sql(", ")
					if utf8.ValidString(v) { // what goes into character columns
						s.sql("HEX(")
						s.utf8(v)
						s.sql(")")
					} else {
						s.sql("NULL")
					}
					*stmt = s.text
				}
				require.NoError(t, checkLiterals(t, db, stmt.String(), part), "%s, seed %d", connection, seed)
				read += len(part)
			}
		}
		t.Attr("dueclaim.figure", fmt.Sprintf("literals read back on %s: %d values, %d connections' character sets and modes", strings.TrimPrefix(b.name, "store:"), read, len(connections)))
	})
}

func checkLiterals(t *testing.T, db *sql.DB, stmt string, values []string) error {
	cells := make([]sql.NullString, 3*len(values))
	into := make([]any, len(cells))
	for i := range cells {
		into[i] = &cells[i]
	}
	if err := db.QueryRowContext(t.Context(), stmt).Scan(into...); err != nil {
		return err
	}
	for i, v := range values {
		want := strings.ToUpper(hex.EncodeToString([]byte(v)))
		assert.Equal(t, want, cells[3*i].String, "val of %q", v)
		assert.Equal(t, want, cells[3*i+1].String, "hex of %q", v)
		assert.Equal(t, utf8.ValidString(v), cells[3*i+2].Valid)
		if cells[3*i+2].Valid {
			assert.Equal(t, want, cells[3*i+2].String, "utf8 of %q", v)
		}
	}
	if t.Failed() {
		return fmt.Errorf("values were changed")
	}
	return nil
}

// literalValues are n values of what has broken out of quotes somewhere.
func literalValues(random *rand.Rand, n int) []string {
	pieces := []string{
		"'", "''", `\`, `\\`, `"`, "`", "\x00", "\n", "\x1a", "\xbf", "\x81", "\x95", "\xe8", "\xfc", "\xc0", "\xbf'", "\xbf\\'", "\x95\\'", "a", "Z", "~", "[", "{", "|", "é", "日", "😀",
		" OR 1=1 ", "--", "/*", "*/", "#", ";", "x'", "_binary'", "%", "_", "?", ":a", "@", "0", "NULL",
	}
	values := []string{"", "'", `\`, "\x00", "~[]{}|^`@#$"}
	for i := range 256 {
		values = append(values, string([]byte{byte(i)}))
	}
	for len(values) < n {
		var b strings.Builder
		for range 1 + random.IntN(20) {
			if random.IntN(3) == 0 {
				b.WriteByte(byte(random.UintN(256)))
			} else {
				b.WriteString(pieces[random.IntN(len(pieces))])
			}
		}
		values = append(values, b.String())
	}
	for range n { // and whole characters only
		var b strings.Builder
		for range 1 + random.IntN(8) {
			b.WriteRune(rune(random.IntN(0x2fff)))
		}
		values = append(values, b.String())
	}
	return values
}
