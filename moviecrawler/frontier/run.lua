-- What the scripts of a run share.
--
-- KEYS  1 state  2 queue  3 leases  4 requests  5 seen  6 dead  7 titles  8 workers; `keys.py` says what each holds
-- given.arguments  what the run's arguments are, for a state that was lost

local state, queue, leases, requests, seen, dead, titles, workers = unpack(KEYS)
local LEVEL = 2 ^ 44  -- between the scores of two levels of priority in the queue

if redis.call('EXISTS', state) == 0 then
    -- The state was lost, and with it who queues what the arguments name: a worker does it again, so nothing may count as seen.
    local failed = redis.call('HLEN', dead)
    local total = redis.call('HLEN', requests) + failed
    redis.call('UNLINK', seen)
    -- Numbers in the order of queueing go on above all that were given before.
    redis.call('HSET', state, 'arguments', given.arguments, 'total', total, 'done', 0, 'failed', failed, 'order', now)
end

-- What is damaged is handed out as it is, and becomes a dead letter by what its worker says of it.
local function parse(value)
    local level, deliveries, body = value:match('^([012]) (%d+) %S*\n(.*)$')
    return level or 2, tonumber(deliveries or 0), body or value
end

local function put(id, level, order, deliveries, body)
    redis.call('HSET', requests, id, level .. ' ' .. deliveries .. ' \n' .. body)
    redis.call('ZADD', queue, level * LEVEL + order, id)
end

-- Put a request back at the front of its level.
local function put_back(id, value, deliveries)
    local level, before, body = parse(value)
    redis.call('ZREM', leases, id)
    put(id, level, 0, deliveries or before, body)
end

local function bury(id, value, reason)
    redis.call('ZREM', queue, id)
    redis.call('ZREM', leases, id)
    redis.call('HDEL', requests, id)
    redis.call('HSET', dead, id, cjson.encode({reason = reason, at = now}) .. '\n' .. value)
    redis.call('HINCRBY', state, 'failed', 1)
end

-- Take note of when the run was over, and put off the end of its keys. Every script of a run ends with this.
local function end_step()
    -- A lease whose request was lost is waited for: its worker still does it.
    local open = math.max(redis.call('HLEN', requests), redis.call('ZCARD', leases))
    if open > 0 then
        redis.call('HDEL', state, 'over_at')
    elseif redis.call('HEXISTS', state, 'seeded') == 1 then
        redis.call('HSETNX', state, 'over_at', now)
    end
    for number = 1, 8 do
        redis.call('PEXPIRE', KEYS[number], 7 * 86400000)
    end
    return open
end
