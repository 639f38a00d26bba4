-- Takes entries that are due: reads them and moves them to the end of their
-- lease in one step.
-- KEYS[1] the sorted set. ARGV[1] now, ARGV[2] until, ARGV[3] limit, ARGV[4] how
-- many wrong scores to return at most from each end; 0: don't look.
-- Returns the ids in order; the score of the first entry that was not taken, or
-- ''; a flat list of place and former score of those ids that need a closer look;
-- a flat list of member and score of those with a score that no due time has.
local due = redis.call('ZRANGEBYSCORE', KEYS[1], '0', ARGV[1], 'LIMIT', '0', ARGV[3])
local rest = redis.call('ZRANGEBYSCORE', KEYS[1], '0', '253402300799999', 'WITHSCORES', 'LIMIT', tostring(#due), '1')
local wrong = {}
if ARGV[4] ~= '0' and #due < tonumber(ARGV[3]) then -- with a backlog they can wait: they never stand before it
  wrong = redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', '(0', 'WITHSCORES', 'LIMIT', '0', ARGV[4])
  local high = redis.call('ZRANGEBYSCORE', KEYS[1], '(253402300799999', '+inf', 'WITHSCORES', 'LIMIT', '0', ARGV[4])
  for i = 1, #high do
    wrong[#wrong + 1] = high[i]
  end
end
local odd = {}
local changes = {}
for i = 1, #due do
  changes[2 * i - 1] = ARGV[2]
  changes[2 * i] = due[i]
  if #due[i] == 0 or #due[i] > 255 or string.find(due[i], '[^!-~]') then -- the caller decides
    odd[#odd + 1] = i
    odd[#odd + 1] = redis.call('ZSCORE', KEYS[1], due[i])
  end
end
if #due > 0 then
  redis.call('ZADD', KEYS[1], 'XX', unpack(changes))
end
return {due, rest[2] or '', odd, wrong}
