package mysqlclaim_test

import (
	"regexp"
	"slices"
	"strings"

	"github.com/go-sql-driver/mysql"

	"github.com/dueclaim/dueclaim/conformance"
)

// What MariaDB is first sent for a claim, an extension and a completion: the same
// condition and assignments without a derived table.
var (
	derived = regexp.MustCompile("^UPDATE \\(SELECT (?:id|id, status, token, attempts, crashes) FROM (`dueclaim_tasks`) FORCE INDEX \\(PRIMARY\\) " +
		"WHERE (.*) LIMIT \\d+ FOR UPDATE SKIP LOCKED\\) AS was STRAIGHT_JOIN .* SET (.*)$")
	direct = "SET STATEMENT innodb_lock_wait_timeout = 0 FOR UPDATE $1 AS t FORCE INDEX (PRIMARY) SET $3 WHERE $2"
	busy   = &mysql.MySQLError{Number: 1205, SQLState: [5]byte{'H', 'Y', '0', '0', '0'}, Message: "Lock wait timeout exceeded; try restarting transaction"}
)

// onMariaDB are the scripts as they go there.
func onMariaDB(all map[string][]conformance.SQLStep) map[string][]conformance.SQLStep {
	there := map[string][]conformance.SQLStep{}
	for name, steps := range all {
		var list []conformance.SQLStep
		for _, step := range steps {
			if step.Once {
				step.Rows = []row{append(row{"10.11.6-MariaDB-1:10.11.6+maria~deb12"}, step.Rows[0][1:]...)}
			}
			if !derived.MatchString(step.Text) {
				list = append(list, step)
				continue
			}
			first := step
			first.Text = strings.ReplaceAll(derived.ReplaceAllString(step.Text, direct), "was.", "t.")
			if strings.HasSuffix(name, "/busy") { // a row is locked
				first.Affected, first.Err = 0, busy
				list = append(list, first, step)
				continue
			}
			list = append(list, first)
		}
		there[name] = slices.Clip(list)
	}
	return there
}
