-- Adds entries; where an id is there already the earlier due time stays.
-- KEYS[1] the sorted set. ARGV[1] the channel, ARGV[2] the earliest due time of
-- this call, then due time and id of each entry.
local head = redis.call('ZRANGEBYSCORE', KEYS[1], '0', '253402300799999', 'WITHSCORES', 'LIMIT', '0', '1')
redis.call('ZADD', KEYS[1], 'LT', unpack(ARGV, 3))
if #head == 0 or tonumber(ARGV[2]) < math.ceil(tonumber(head[2])) then
  -- pcall: a user who may not publish still may add; the wake-up is a hint.
  redis.pcall('PUBLISH', ARGV[1], ARGV[2])
end
return 1
