-- What all scripts of a run share.
--
-- KEYS  1 state  2 queue  3 leases  4 requests  5 seen  6 dead  7 titles  8 workers; `keys.py` says what each holds

local state, queue, leases, requests, seen, dead, titles, workers = unpack(KEYS)
local LEVEL = 3e15  -- distance between the scores of two levels of priority: above all microseconds until 2065

-- Return level, deliveries and body. A damaged value is handed out as it is: its worker makes it a dead letter, with the reason.
local function parse(value)
    local level, deliveries, body = value:match('^(%-?%d) (%d+) %S*\n(.*)$')
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

local function make_dead_letter(id, value, reason)
    redis.call('ZREM', queue, id)
    redis.call('ZREM', leases, id)
    redis.call('HDEL', requests, id)
    redis.call('HSET', dead, id, cjson.encode({reason = reason, at = now}) .. '\n' .. value)
    redis.call('HINCRBY', state, 'failed', 1)
end

-- Note when the run was over, and renew the expiry of its keys. Every script of a run ends with this.
local function end_step()
    -- A lease whose request was lost counts as open: its worker is still at it.
    local open = math.max(redis.call('HLEN', requests), redis.call('ZCARD', leases))
    if open > 0 then
        redis.call('HDEL', state, 'over_at')
    else
        redis.call('HSETNX', state, 'over_at', now)
    end
    for number = 1, 8 do
        redis.call('PEXPIRE', KEYS[number], 7 * 86400000)
    end
    return open
end

if not given.pushes then
    -- Without memory, Redis refuses a script at its first write; all but `push` free memory, so they may run.
    redis.call('ZREM', queue, '')
end
if redis.call('HEXISTS', state, 'total') == 0 then
    -- The run begins, or its state was lost. Its first request stands for the arguments: who leases that queues what they name,
    -- and as nothing may count as seen, all of it.
    put('arguments-' .. time[1] .. time[2], -1, 0, 0, '')  -- an id that no earlier one had
    local failed = redis.call('HLEN', dead)
    redis.call('UNLINK', seen)
    local total = redis.call('HLEN', requests) + failed
    redis.call('HSET', state, 'arguments', given.arguments, 'total', total, 'done', 0, 'failed', failed)
end
