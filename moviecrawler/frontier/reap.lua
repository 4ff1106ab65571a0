-- Give the leases of a worker whose heartbeat has stopped back to the queue.
--
-- KEYS  1 state  2 workers  3 leases of that worker  4-6 requests by level  7 dead letters
-- ARGV  1 worker  2 deliveries after which a request is a dead letter
-- Returns {how many went back, how many are dead letters}

local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local deadline = redis.call('ZSCORE', KEYS[2], ARGV[1])
if not deadline or tonumber(deadline) > now then
    return {0, 0}
end
local back, dead = 0, 0
local leases = redis.call('HGETALL', KEYS[3])
for i = 1, #leases, 2 do
    local id, entry = leases[i], leases[i + 1]
    local level, deliveries = entry:match('^([012])(%d%d)')
    if level and tonumber(deliveries) >= tonumber(ARGV[2]) then
        local reason = 'handed out ' .. tonumber(deliveries) .. ' times, each time to a worker that died of it or with it'
        redis.call('HSET', KEYS[7], id, cjson.encode({reason = reason, at = now}) .. '\n' .. entry)
        dead = dead + 1
    else
        redis.call('LPUSH', KEYS[4 + (level or 2)], entry)  -- what is damaged is set aside when it is handed out
        back = back + 1
    end
end
redis.call('DEL', KEYS[3])
redis.call('ZREM', KEYS[2], ARGV[1])
redis.call('HDEL', KEYS[1], 'pushed:' .. ARGV[1])
if dead > 0 then
    redis.call('HINCRBY', KEYS[1], 'failed', dead)
end
return {back, dead}
