package seededbugs

func redisBugs() []bug {
	return []bug{
		{
			name: "redis-take-removes",
			harm: "a worker that dies takes the entries of its tasks with it, and they are late by a sweep",
			file: "redisindex/lua/take.lua",
			old:  `redis.call('ZADD', KEYS[1], 'XX', unpack(changes))`,
			new:  `redis.call('ZREM', KEYS[1], unpack(due))`,
			by:   []check{onRedis, repeatedIndexSteps},
		},
		{
			name: "redis-move-without-compare",
			harm: "a slow worker moves the entry of a task that was rescheduled to earlier, and it is late",
			file: "redisindex/lua/move.lua",
			old:  `if at and math.ceil(at) == tonumber(from) then`,
			new:  `if at then`,
			by:   []check{onRedis, repeatedIndexSteps},
		},
		{
			name: "redis-remove-without-compare",
			harm: "the end of one task removes the entry of the next one of that id, and it is late",
			file: "redisindex/lua/remove.lua",
			old:  `if at and (ARGV[n + i] == '' or math.ceil(at) == tonumber(ARGV[n + i])) then`,
			new:  `if at then`,
			by:   []check{onRedis, repeatedIndexSteps},
		},
		{
			name: "redis-list-among-many",
			harm: "of many tasks due at one instant the first are looked at again and again, and what was cancelled stays in Redis",
			file: "redisindex/lua/list.lua",
			old:  `if at[1] and after(at[1], ARGV[3]) then`,
			new:  `if at[1] then`,
			by:   []check{onRedis, listsOfRedis},
		},
		{
			name: "redis-generation-that-stays",
			harm: "nobody notices that Redis evicted the index, until the next full sweep",
			file: "redisindex/lua/generation.lua",
			old:  `name = ARGV[1]`,
			new:  `name = 'the one'`,
			by:   []check{lossesOfRedis, scene("R17", ""), spoiltRedis},
		},
	}
}
