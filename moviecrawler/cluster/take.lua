-- Hand the next job to a node.
-- ARGV: 1 the node's id.
-- Returns the job's JSON, its member in the queue and how often it was started; nil when none is pending.
-- Returns an error when the node has no lease.
local lease = redis.call('ZSCORE', NODES, ARGV[1])
if not lease or tonumber(lease) < NOW then
    return redis.error_reply('LEASE this node has no lease; it has to send a heartbeat first')
end
local first = redis.call('ZPOPMIN', PENDING)
if #first == 0 then
    return nil
end
local key = string.sub(first[1], 17)
local record = read(key)
record.starts = record.starts + 1
run(key, record, ARGV[1])
count('started')
changed()
return {cjson.encode(record.job), record.queue_member, record.starts}
