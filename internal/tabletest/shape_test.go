package tabletest_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/dueclaim/dueclaim/internal/tabletest"
)

func TestShapeForgetsNamesAndValuesOnly(t *testing.T) {
	for sql, want := range map[string]string{
		"SELECT `a`, `b``c` FROM t WHERE x = 'y' AND n <= 17":    "SELECT id , id FROM t WHERE x = val AND n < = val",
		"x = 'it''s' AND y = _utf8mb4'\\'' AND z = x'0aff'":      "x = val AND y = val AND z = val",
		"t.`a` = TIMESTAMP'2030-01-02 03:04:05' LIMIT 10":        "t . id = val LIMIT val",
		"SELECT 'a' ' OR 1=1'":                                   "SELECT val val",
		"a = ?1 AND b = $12::text[]":                             "a = val AND b = val : : text [ ]",
		"a = E'\\' OR 1=1 '":                                     "a = val",
		"UPDATE /*+ SET_VAR(time_zone='+00:00') */ t SET a = -1": "UPDATE / * + SET_VAR ( time_zone = val ) * / t SET a = - val",
	} {
		got, err := tabletest.Shape(sql, '`', true)
		require.NoError(t, err, sql)
		assert.Equal(t, want, got, sql)
	}
	a, err := tabletest.Shape(`SELECT "a""; DROP" FROM "b"`, '"', false)
	require.NoError(t, err)
	assert.Equal(t, "SELECT id FROM id", a)
	for _, sql := range []string{"a -- b", "a; b", "a # b", "a /* b", "'a", "`a", "a = 'b\\'", "'\x00'", "größe"} {
		_, err := tabletest.Shape(sql, '`', true)
		assert.Error(t, err, sql)
	}
}
