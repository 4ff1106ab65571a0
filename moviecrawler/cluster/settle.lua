-- Record how a node's job ended.
-- ARGV: 1 the node's id, 2 the job's key, 3 how: 'finished', 'cancelled', 'died', 'recycled' or 'handed_back', 4 JSON of the outcome,
--       5 the outcome's reason.
-- Returns 1; 0 when the job is not this node's any more.
local key, how = ARGV[2], ARGV[3]
local is_over = how == 'finished' or how == 'cancelled'
local found = redis.call('HGET', RUNNING, key)
if found then
    local record = cjson.decode(found)
    if record.node ~= ARGV[1] then
        return 0
    end
    if not is_over then
        give_back(key, record, how, ARGV[5])
    end
elseif is_over then
    -- Was it queued again while this node was not heard? It is done nevertheless.
    local place = redis.call('HGET', PLACES, key)
    if not place or redis.call('ZREM', PENDING, place) == 0 then
        return 0
    end
else
    return 0
end
if is_over then
    finish(key, how, ARGV[4])
end
changed()
return 1
