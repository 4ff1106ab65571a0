-- Queue a job, once.
-- ARGV: 1 the job's key, 2 its JSON, 3 minus its priority, 4 the limit of pending jobs, 5 the channel of events,
--       6 '1' to leave out a job that is finished.
-- Returns 1; 0 when a job of that key, but with other contents, is pending or running; -1 when too many are pending.
local key, spec = ARGV[1], ARGV[2]
local known = redis.call('HGET', JOBS, key)
if known then
    return known == spec and 1 or 0
end
if ARGV[6] == '1' and redis.call('HEXISTS', RESULTS, key) == 1 then
    return 1
end
if redis.call('ZCARD', PENDING) >= tonumber(ARGV[4]) then
    return -1
end
local place = place_of(key)
redis.call('HSET', JOBS, key, spec)
redis.call('HSET', PLACES, key, place)
redis.call('ZADD', PENDING, ARGV[3], place)
redis.call('ZREM', CANCELLED, key)
redis.call('ZREM', FINISHED, key)
redis.call('HDEL', RESULTS, key)
count('scheduled')
redis.call('PUBLISH', ARGV[5], 'wake')
return 1
