-- Record how a node's job ended.
-- ARGV: 1 the node's id, 2 the job's key, 3 how it ended, a `RunEnd`, 4 JSON of its `Outcome`.
-- Returns 1; 0 when another node has the job now.
local node = ARGV[1]
local key = ARGV[2]
local how = ARGV[3]
local record = read(key)
local owner = redis.call('HGET', RUNNING, key)
local outcome = cjson.decode(ARGV[4])
local is_over = how == 'finished' or how == 'cancelled'
if not record or record.state == 'finished' or owner and owner ~= node
    or not owner and not is_over then
    return 0
end
if is_over then
    -- It may have been queued again while this node could not reach Redis.
    redis.call('ZREM', PENDING, record.queue_member)
    record.node_id = node
    finish(key, record, how, outcome)
else
    give_back(key, record, how, outcome.reason)
end
changed()
return 1
