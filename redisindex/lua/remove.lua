-- Removes entries that still stand where the caller thinks.
-- KEYS[1] the sorted set. ARGV two lists of the same length: ids, due times; '' is any.
-- A fractional score that someone else wrote counts as rounded up.
-- Returns 1 when that leaves the set empty, else 0.
local n = #ARGV / 2
local scores = redis.call('ZMSCORE', KEYS[1], unpack(ARGV, 1, n))
local gone = {}
for i = 1, n do
  local at = scores[i] and tonumber(scores[i])
  if at and (ARGV[n + i] == '' or math.ceil(at) == tonumber(ARGV[n + i])) then
    gone[#gone + 1] = ARGV[i]
  end
end
if #gone == 0 then
  return 0
end
local size = redis.call('ZCARD', KEYS[1])
return redis.call('ZREM', KEYS[1], unpack(gone)) == size and 1 or 0
