package mysqlclaim_test

import (
	"database/sql/driver"
	"regexp"
	"slices"
	"strings"

	"github.com/go-sql-driver/mysql"

	"github.com/dueclaim/dueclaim/conformance"
)

// What MariaDB is first sent for a claim, an extension and a completion: the same
// condition and assignments without a derived table.
var (
	derived = regexp.MustCompile("^UPDATE /\\*\\+ SET_VAR\\(lock_wait_timeout = 1\\) SET_VAR\\(sql_safe_updates = 0\\) \\*/ \\(SELECT (?:id|id, status, token, attempts, crashes) FROM (`dueclaim_tasks`) FORCE INDEX \\(PRIMARY\\) " +
		"WHERE (.*) LIMIT \\d+ FOR UPDATE SKIP LOCKED\\) AS was STRAIGHT_JOIN .* SET (.*)$")
	hinted = regexp.MustCompile(`^(\w+) /\*\+ SET_VAR\((.*?)\) \*/ `)
	direct = "SET STATEMENT lock_wait_timeout = 1, sql_safe_updates = 0, innodb_lock_wait_timeout = 0 FOR UPDATE $1 AS t FORCE INDEX (PRIMARY) SET $3 WHERE $2"
	busy   = &mysql.MySQLError{Number: 1205, SQLState: [5]byte{'H', 'Y', '0', '0', '0'}, Message: "Lock wait timeout exceeded; try restarting transaction"}
)

// onMariaDB are the scripts as they go there.
func onMariaDB(all map[string][]conformance.SQLStep) map[string][]conformance.SQLStep {
	there := map[string][]conformance.SQLStep{}
	for name, steps := range all {
		var list []conformance.SQLStep
		for _, step := range steps {
			if step.Once {
				step.Rows = []row{slices.Replace(slices.Clone(step.Rows[0]), 1, 2, driver.Value("10.11.9-MariaDB-1:10.11.9+maria~deb12"))}
			}
			if !derived.MatchString(step.Text) {
				step.Text = strings.ReplaceAll(hinted.ReplaceAllStringFunc(step.Text, func(s string) string {
					m := hinted.FindStringSubmatch(s)
					sets := strings.ReplaceAll(m[2], ") SET_VAR(", ", ")
					if !strings.Contains(sets, "lock_wait") { // in the user's transaction
						sets += ", innodb_snapshot_isolation = OFF"
					}
					return "SET STATEMENT " + sets + " FOR " + m[1] + " "
				}), "ROW(", "(")
				list = append(list, step)
				continue
			}
			first := step
			first.Text = strings.ReplaceAll(derived.ReplaceAllString(step.Text, direct), "was.", "t.")
			if strings.HasSuffix(name, "/busy") { // a row is locked
				first.Affected, first.Err = 0, busy
				step.Text = "SET STATEMENT lock_wait_timeout = 1, sql_safe_updates = 0 FOR UPDATE " + hinted.ReplaceAllString(step.Text, "")
				list = append(list, first, step)
				continue
			}
			list = append(list, first)
		}
		there[name] = slices.Clip(list)
	}
	return there
}
