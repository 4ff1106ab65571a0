-- Hand the next job to a node.
-- ARGV: 1 the node's id.
-- Returns the job's key, its JSON, when it was queued (µs since 1970) and how often it was started; nil when none is pending; an error when the node has no lease.
local lease = redis.call('ZSCORE', NODES, ARGV[1])
local now = now_ms()
if not lease or tonumber(lease) < now then
    return redis.error_reply('LEASE this node has none; it has to join first')
end
while true do
    local first = redis.call('ZPOPMIN', PENDING)
    if #first == 0 then
        return nil
    end
    local key = string.sub(first[1], 17)
    local spec = redis.call('HGET', JOBS, key)
    if spec then
        redis.call('HSET', RUNNING, key, cjson.encode({node = ARGV[1], score = first[2], at = now}))
        count('started')
        return {key, spec, string.sub(first[1], 1, 16), started(key, ARGV[1])}
    end
end
