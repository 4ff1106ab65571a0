-- A node leaves: its jobs go back to the queue.
-- ARGV: 1 the node's id, 2 the channel of events, 3 how many outcomes are kept.
redis.call('ZREM', NODES, ARGV[1])
redis.call('HDEL', NODE_INFOS, ARGV[1])
for _, key in ipairs(redis.call('HKEYS', RUNNING)) do
    local record = record_of(key)
    if record and record.node == ARGV[1] then
        give_back(key, record, 'handed_back', '', 0, tonumber(ARGV[3]))
    end
end
redis.call('PUBLISH', ARGV[2], 'wake')
