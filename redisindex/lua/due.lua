-- Reads entries that are due, in order, and scores that no due time can have.
-- KEYS[1] the sorted set. ARGV[1] now, ARGV[2] offset, ARGV[3] count,
-- ARGV[4] how many wrong scores to return at most from each end.
-- Returns two flat lists of id and score.
local due = redis.call('ZRANGEBYSCORE', KEYS[1], '0', ARGV[1], 'WITHSCORES', 'LIMIT', ARGV[2], ARGV[3])
local wrong = redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', '(0', 'WITHSCORES', 'LIMIT', '0', ARGV[4])
local high = redis.call('ZRANGEBYSCORE', KEYS[1], '(253402300799999', '+inf', 'WITHSCORES', 'LIMIT', '0', ARGV[4])
for i = 1, #high do
  wrong[#wrong + 1] = high[i]
end
return {due, wrong}
