-- Reads entries from anywhere, in order.
-- KEYS[1] the sorted set. ARGV[1] the millisecond before the first one, ARGV[2] the
-- first one, ARGV[3] the id there after which it begins; '': at the first id,
-- ARGV[4] the last millisecond, ARGV[5] count.
-- A fractional score that someone else wrote counts as rounded up.
-- Returns a flat list of id and score.
if ARGV[3] == '' then
  return redis.call('ZRANGEBYSCORE', KEYS[1], '(' .. ARGV[1], ARGV[4], 'WITHSCORES', 'LIMIT', '0', ARGV[5])
end
-- Many ids may stand at one millisecond: where among them is found by halves. Lua would
-- compare texts by the server's locale, Redis by bytes.
local function after(a, b)
  for i = 1, math.min(#a, #b) do
    local x, y = string.byte(a, i), string.byte(b, i)
    if x ~= y then
      return x > y
    end
  end
  return #a > #b
end
local low = redis.call('ZCOUNT', KEYS[1], '-inf', ARGV[1])
local high = redis.call('ZCOUNT', KEYS[1], '-inf', ARGV[2])
while low < high do
  local mid = math.floor((low + high) / 2)
  local at = redis.call('ZRANGE', KEYS[1], mid, mid)
  if at[1] and after(at[1], ARGV[3]) then
    high = mid
  else
    low = mid + 1
  end
end
local rows = redis.call('ZRANGE', KEYS[1], low, low + tonumber(ARGV[5]) - 1, 'WITHSCORES')
local within = {}
for i = 1, #rows, 2 do
  if tonumber(rows[i + 1]) > tonumber(ARGV[4]) then
    break
  end
  within[i] = rows[i]
  within[i + 1] = rows[i + 1]
end
return within
