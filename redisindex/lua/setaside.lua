-- Sets members aside that are no entries: moves them into the junk set.
-- KEYS[1] the sorted set, KEYS[2] the junk set. ARGV[1] the rank, from
-- the end, of the last member that the junk set does not keep, ARGV[2] how many bytes a member has at most to be kept there,
-- then three for each: the member, its score now, its score as it was found.
-- Returns the places (from 1) of those set aside by this call.
redis.call('ZCARD', KEYS[2]) -- an error here, for a key of another type, comes before any write
local moved = {}
for i = 3, #ARGV, 3 do
  local score = redis.call('ZSCORE', KEYS[1], ARGV[i])
  if score and (score == ARGV[i + 1] or (tonumber(score) and tonumber(score) == tonumber(ARGV[i + 1]))) then
    redis.call('ZREM', KEYS[1], ARGV[i])
    if #ARGV[i] <= tonumber(ARGV[2]) then
      redis.call('ZADD', KEYS[2], ARGV[i + 2], ARGV[i])
    end
    moved[#moved + 1] = i / 3
  end
end
redis.call('ZREMRANGEBYRANK', KEYS[2], '0', ARGV[1])
return moved
