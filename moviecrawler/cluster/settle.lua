-- Record how a node's job ended.
-- ARGV: 1 the node's id, 2 the job's key, 3 how: 'finished', 'cancelled', 'died', 'recycled' or 'handed_back', 4 JSON of the
--       outcome, 5 the limit of deaths, 6 how many outcomes are kept, 7 the channel of events.
-- Returns 1; 0 when the job is not this node's any more.
local key, how, keep = ARGV[2], ARGV[3], tonumber(ARGV[6])
local over = how == 'finished' or how == 'cancelled'
local record = record_of(key)
if record then
    if record.node ~= ARGV[1] then
        return 0
    end
    if over then
        finish(key, ARGV[4], keep)
        count(how)
    else
        give_back(key, record, how, cjson.decode(ARGV[4]).reason, tonumber(ARGV[5]), keep)
        redis.call('PUBLISH', ARGV[7], 'wake')
    end
    return 1
end
local place = redis.call('HGET', PLACES, key)
if over and place and redis.call('ZREM', PENDING, place) == 1 then
    -- It was queued again while this node was unreachable, and is done nevertheless.
    finish(key, ARGV[4], keep)
    count(how)
    return 1
end
return 0
