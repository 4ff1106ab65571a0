-- Cancel a job.
-- ARGV: 1 the job's key, 2 the signal for its process.
-- Returns 'pending', 'running', or nil for neither.
local key = ARGV[1]
local found = redis.call('HGET', RUNNING, key)
if found then
    local record = cjson.decode(found)
    record.signal, record.cancels = ARGV[2], (record.cancels or 0) + 1
    redis.call('HSET', RUNNING, key, cjson.encode(record))
    changed()
    return 'running'
end
local place = redis.call('HGET', PLACES, key)
if not place then
    return nil
end
redis.call('ZREM', PENDING, place)
if redis.call('HEXISTS', STARTS, key) == 1 then
    finish_for(key, 'cancelled', '', now_ms(), 'cancelled')  -- it was started before, and has a log
else
    redis.call('HDEL', PLACES, key)
    redis.call('HDEL', JOBS, key)
    count('cancelled')
end
changed()
return 'pending'
