-- Notes that the sorted set is gone because its last entry was removed, which is no
-- loss. Where it has entries again nothing is noted.
-- KEYS[1] the sorted set, KEYS[2] the hash with its name.
if redis.call('EXISTS', KEYS[1]) == 1 or redis.call('HGET', KEYS[2], 'seen') ~= '1' then
  return 0
end
redis.call('HSET', KEYS[2], 'seen', '0')
return 1
