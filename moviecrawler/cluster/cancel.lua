-- Cancel a job.
-- ARGV: 1 the job's key, 2 the signal for its process, 3 the channel of events, 4 how long it is remembered (ms).
-- Returns 'pending', 'running', or nil for neither.
local key = ARGV[1]
local record = record_of(key)
if record then
    record.signal = ARGV[2]
    record.cancels = (record.cancels or 0) + 1
    redis.call('HSET', RUNNING, key, cjson.encode(record))
    redis.call('PUBLISH', ARGV[3], table.concat({'cancel', record.node, key, ARGV[2], record.cancels}, '\n'))
    return 'running'
end
local place = redis.call('HGET', PLACES, key)
if place and redis.call('ZREM', PENDING, place) == 1 then
    forget(key)
    if redis.call('HEXISTS', RESULTS, key) == 0 then
        redis.call('HDEL', STARTS, key)
    end
    redis.call('ZADD', CANCELLED, now_ms() + tonumber(ARGV[4]), key)
    count('cancelled')
    return 'pending'
end
return nil
