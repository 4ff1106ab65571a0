-- Hand the next job to a node.
-- ARGV: 1 the node's id.
-- Returns the job's JSON, when it was queued (µs since 1970) and how often it was started; nil when none is pending; an error when the
-- node has no lease.
local lease = redis.call('ZSCORE', NODES, ARGV[1])
if not lease or tonumber(lease) < now_ms() then
    return redis.error_reply('LEASE this node has none; it has to join first')
end
local first = redis.call('ZPOPMIN', PENDING)
if #first == 0 then
    return nil
end
local key = string.sub(first[1], 17)
run_by(key, ARGV[1], first[2])
count('started')
changed()
return {redis.call('HGET', JOBS, key), string.sub(first[1], 1, 16), redis.call('HINCRBY', STARTS, key, 1)}
