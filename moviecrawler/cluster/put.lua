-- Queue a job.
-- ARGV: 1 the job's key, 2 its JSON, 3 minus its priority.
-- Returns nil; or the JSON of the job with that key if it is pending or running; or -1 if too many
-- are pending.
local key = ARGV[1]
local record = read(key)
if record and record.state ~= 'finished' then
    if record.state == 'pending' then
        -- Redis may have lost the queue.
        redis.call('ZADD', PENDING, -(record.job.priority or 0), record.queue_member)
    end
    return cjson.encode(record.job)
end
if redis.call('ZCARD', PENDING) >= MAX_PENDING then
    return -1
end
local queue_member = string.format('%010.0f%06.0f', TIME[1], TIME[2]) .. key
redis.call('ZREM', FINISHED, key)
write(key, {
    state = 'pending',
    job = cjson.decode(ARGV[2]),
    queue_member = queue_member,
    starts = 0,
})
redis.call('ZADD', PENDING, ARGV[3], queue_member)
changed()
return nil
