-- Adds entries whose id is not there; one that is there stays as it is.
-- KEYS[1] the sorted set. ARGV[1] the channel, then two lists of the same length,
-- one after the other: ids, due times.
local n = (#ARGV - 1) / 2
local scores = redis.call('ZMSCORE', KEYS[1], unpack(ARGV, 2, n + 1))
local missing = {}
local earliest = nil
for i = 1, n do
  if not scores[i] then
    local due = ARGV[1 + n + i]
    missing[#missing + 1] = due
    missing[#missing + 1] = ARGV[1 + i]
    if not earliest or tonumber(due) < tonumber(earliest) then
      earliest = due
    end
  end
end
if #missing == 0 then
  return 0
end
local head = redis.call('ZRANGEBYSCORE', KEYS[1], '0', '253402300799999', 'WITHSCORES', 'LIMIT', '0', '1')
redis.call('ZADD', KEYS[1], 'NX', unpack(missing))
if #head == 0 or tonumber(earliest) < math.ceil(tonumber(head[2])) then
  redis.pcall('PUBLISH', ARGV[1], earliest)
end
return #missing / 2
