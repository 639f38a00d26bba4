-- Names the life of the sorted set: another name after it, or all the server's
-- data, was gone.
-- KEYS[1] the sorted set, KEYS[2] the hash with its name. ARGV[1] a new name.
-- Returns the name.
local there = redis.call('EXISTS', KEYS[1])
local name = redis.call('HGET', KEYS[2], 'name')
local seen = redis.call('HGET', KEYS[2], 'seen')
if not name or (there == 0 and seen == '1') then
  name = ARGV[1]
  redis.call('HSET', KEYS[2], 'name', name, 'seen', tostring(there))
elseif there == 1 and seen ~= '1' then
  redis.call('HSET', KEYS[2], 'seen', '1')
end
return name
