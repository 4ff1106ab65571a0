-- Queue a job.
-- ARGV: 1 the job's key, 2 its JSON, 3 minus its priority.
-- Returns 1, also when the same job is pending or running; 0 when another one of that key is; -1 when too many are pending.
local key = ARGV[1]
if redis.call('HEXISTS', PLACES, key) == 1 then
    return redis.call('HGET', JOBS, key) == ARGV[2] and 1 or 0
end
if redis.call('ZCARD', PENDING) >= MAX_PENDING then
    return -1
end
local time = redis.call('TIME')
local place = string.format('%016.0f', time[1] * 1000000 + time[2]) .. key
redis.call('ZREM', FINISHED, key)
redis.call('HDEL', OUTCOMES, key)
redis.call('HDEL', STARTS, key)
redis.call('HSET', JOBS, key, ARGV[2])
redis.call('HSET', PLACES, key, place)
redis.call('ZADD', PENDING, ARGV[3], place)
count('scheduled')
changed()
return 1
