-- Record how a node's job ended.
-- ARGV: 1 the node's id, 2 the job's key, 3 how: 'finished', 'cancelled', 'died', 'recycled' or 'handed_back', 4 JSON of the outcome.
-- Returns 1; 0 when the job is not this node's any more.
local node, key, how = unpack(ARGV)
local record, owner = read(key), redis.call('HGET', RUNNING, key)
local outcome = cjson.decode(ARGV[4])
local is_over = how == 'finished' or how == 'cancelled'
if not record or record.state == 'finished' or owner and owner ~= node or not owner and not is_over then
    return 0
end
if is_over then
    redis.call('ZREM', PENDING, record.queue_member)  -- queued again while this node was not heard, it is done nevertheless
    record.node_id = node
    finish(key, record, how, outcome)
else
    give_back(key, record, how, outcome.reason)
end
changed()
return 1
