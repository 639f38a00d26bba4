package seededbugs

func mysqlBugs() []bug {
	return []bug{
		{
			name: "mysql-held-by-anybody",
			harm: "an older holder ends and extends what is another's",
			file: "mysqlclaim/fence.go",
			old:  `t.sql("token = ").int(f.token).sql(" AND holder = ").val(f.holder).sql(" AND id IN (")`,
			new:  `t.sql("id IN (")`,
			by:   []check{onMariaDB, scene("R42", "mariadb"), brokenLineToMariaDB},
		},
		{
			name: "mysql-read-back-without-holder",
			harm: "of two workers that claim overlapping batches both believe to have the common ids, and run them",
			file: "mysqlclaim/claim.go",
			old:  `out[chunk[i].at] = row.Claimed(lease)`,
			new:  "if changed > 0 && row.Status == claim.Running {\n\t\t\trow.Holder = lease.Holder\n\t\t}\n\t\tout[chunk[i].at] = row.Claimed(lease)",
			by:   []check{racesOnMariaDB, onMariaDB, brokenLineToMariaDB},
		},
		{
			name: "mysql-claim-compares-with-the-wrong-end",
			harm: "leases are taken over while they last",
			file: "mysqlclaim/claim.go",
			old:  `lease_until < ").int(lease.Now.UnixMilli())`,
			new:  `lease_until < ").int(lease.Until.UnixMilli())`,
			by:   []check{onMariaDB, brokenLineToMariaDB},
		},
		{
			name: "mysql-released-counts",
			harm: "a few deploys send tasks to the dead that never ran",
			file: "mysqlclaim/settle.go",
			old:  `t.lease_until = 0, t.attempts = was.attempts - 1")`,
			new:  `t.lease_until = 0")`,
			by:   []check{onMariaDB, scene("R23", "")},
		},
		{
			name: "mysql-sweep-passes-over-lapsed-leases",
			harm: "a killed worker's tasks whose index entries are gone stay running for ever",
			file: "mysqlclaim/waiting.go",
			old:  `lease_until < ").int(now.UnixMilli())`,
			new:  `lease_until < ").int(0)`,
			by:   []check{onMariaDB, scene("R1", "mariadb")},
		},
	}
}

func postgresBugs() []bug {
	return []bug{
		{
			name: "postgres-claim-by-an-old-look",
			harm: "of two workers that claim at the same time both get the task",
			file: "pgclaim/claim.go",
			old: `
  SELECT r.place FROM unnest($2::text[]) AS a(id) CROSS JOIN LATERAL (
    SELECT t.ctid AS place FROM {table} AS t
     WHERE t.queue = $1::text AND t.id = a.id
       AND {claimable}
       FOR NO KEY UPDATE SKIP LOCKED) AS r)
UPDATE {table} AS t
   SET status = 'running', token = t.token + 1, holder = $3::text, lease_until = $6::bigint,
       attempts = t.attempts + 1, crashes = t.crashes + CASE t.status WHEN 'running' THEN 1 ELSE 0 END
 WHERE {found} AND {claimable} AND {hex}
`,
			new: `
  SELECT r.id FROM unnest($2::text[]) AS a(id) CROSS JOIN LATERAL (
    SELECT t.id FROM {table} AS t
     WHERE t.queue = $1::text AND t.id = a.id
       AND {claimable}
       ) AS r)
UPDATE {table} AS t
   SET status = 'running', token = t.token + 1, holder = $3::text, lease_until = $6::bigint,
       attempts = t.attempts + 1, crashes = t.crashes + CASE t.status WHEN 'running' THEN 1 ELSE 0 END
 WHERE t.queue = $1::text AND t.id = ANY (ARRAY(SELECT id FROM picked)) AND {hex}
`,
			by: []check{onPgx, longRacesOnPgx, brokenLineToPgx},
		},
		{
			name: "postgres-held-by-anybody",
			harm: "an older holder ends and extends what is another's",
			file: "pgclaim/statements.go",
			old:  "`t.token = a.token AND t.holder = a.holder AND t.status = 'running'`",
			new:  "`t.status = 'running'`",
			by:   []check{onPgx, scene("R42", "postgres.*"), brokenLineToPgx},
		},
		{
			name: "postgres-sweep-passes-over-lapsed-leases",
			harm: "a killed worker's tasks whose index entries are gone stay running for ever",
			file: "pgclaim/sweep.go",
			old:  `WHEN 'running' THEN t.lease_until < $5::bigint`,
			new:  `WHEN 'running' THEN t.lease_until < $5::bigint AND false`,
			by:   []check{onPgx, scene("R1", "postgres.*")},
		},
		{
			name: "postgres-reused-id-starts-anew",
			harm: "after a step of the clock an id that is used again has lower tokens than before, and a fenced resource refuses its holder",
			file: "pgclaim/insert.go",
			old:  `token = greatest(t.token + 1, excluded.token)`,
			new:  `token = 1`,
			by:   []check{onPgx, tokensOnPgx, brokenLineToPgx},
		},
	}
}

func sqliteBugs() []bug {
	return []bug{
		{
			name: "sqlite-claim-compares-with-the-wrong-end",
			harm: "leases are taken over while they last",
			file: "sqliteclaim/claim.go",
			old:  `lease_until < ?6 AND holder <> ?3`,
			new:  `lease_until < max(?4, ?6) AND holder <> ?3`,
			by:   []check{onSQLite, lostCallsOfSQLite},
		},
		{
			name: "sqlite-settled-by-anybody",
			harm: "an older holder ends what is another's",
			file: "sqliteclaim/settle.go",
			old:  `AND token = ?3 AND holder = ?4`,
			new:  `AND ?3 = ?3 AND ?4 = ?4`,
			by:   []check{onSQLite, lostCallsOfSQLite},
		},
	}
}
