-- Moves entries that still stand where the caller thinks.
-- KEYS[1] the sorted set. ARGV[1] the channel, then three lists of the same
-- length, one after the other: ids, from, to.
-- A fractional score that someone else wrote counts as rounded up.
local n = (#ARGV - 1) / 3
local scores = redis.call('ZMSCORE', KEYS[1], unpack(ARGV, 2, n + 1))
local changes = {}
local earliest = nil
for i = 1, n do
  local at = scores[i] and tonumber(scores[i])
  local from, to = ARGV[1 + n + i], ARGV[1 + 2 * n + i]
  if at and math.ceil(at) == tonumber(from) then
    changes[#changes + 1] = to
    changes[#changes + 1] = ARGV[1 + i]
    if tonumber(to) < tonumber(from) and (not earliest or tonumber(to) < tonumber(earliest)) then
      earliest = to
    end
  end
end
if #changes == 0 then
  return 0
end
local head = {}
if earliest then
  head = redis.call('ZRANGEBYSCORE', KEYS[1], '0', '253402300799999', 'WITHSCORES', 'LIMIT', '0', '1')
end
redis.call('ZADD', KEYS[1], 'XX', unpack(changes))
if earliest and (#head == 0 or tonumber(earliest) < math.ceil(tonumber(head[2]))) then
  redis.pcall('PUBLISH', ARGV[1], earliest)
end
return #changes / 2
