-- A node's heartbeat: renew its lease, compare its jobs with those in Redis, queue the jobs of dead
-- nodes again, and hand out a job.
-- ARGV:
--   1  the node's id
--   2  its `NodeInfo`
--   3  whether that is news
--   4  its lease (ms)
--   5  whether it takes a job
--   6… its jobs' keys
-- Returns JSON of a `Beat`.

-- After this time, a job that this node was given, but does not name, is queued again.
local UNCLAIMED_SECONDS = 10
local node = ARGV[1]
local lease = tonumber(ARGV[4])
local last = tonumber(redis.call('GET', LAST_BEAT) or NOW)
if NOW - last > lease / 2 then
    -- No node sent a heartbeat: Redis was away, so all leases are renewed.
    for _, other in ipairs(redis.call('ZRANGE', NODES, 0, -1)) do
        redis.call('ZADD', NODES, NOW + lease, other)
    end
end
redis.call('SET', LAST_BEAT, NOW)
redis.call('ZADD', NODES, NOW + lease, node)
local is_change = redis.call('HSET', NODE_INFOS, node, ARGV[2]) == 1 or ARGV[3] == '1'
local dead = {}
for _, other in ipairs(redis.call('ZRANGEBYSCORE', NODES, '-inf', NOW)) do
    dead[other] = true
    is_change = true
    redis.call('ZREM', NODES, other)
    redis.call('HDEL', NODE_INFOS, other)
    count('node_lost')
end

local named = {}
local stop = {}
local cancels = {}
for i = 6, #ARGV do
    named[ARGV[i]] = true
end
local alive = {}
local leases = redis.call('ZRANGE', NODES, 0, -1, 'WITHSCORES')
for i = 1, #leases, 2 do
    alive[leases[i]] = true
end
local running = redis.call('HGETALL', RUNNING)
for i = 1, #running, 2 do
    local key = running[i]
    local owner = running[i + 1]
    if not alive[owner] then
        give_back(key, read(key), 'died', 'its node died')
        is_change = true
    elseif owner == node then
        local record = read(key)
        if not named[key] and SECONDS - record.started_at > UNCLAIMED_SECONDS then
            give_back(key, record, 'handed_back')
            is_change = true
        elseif named[key] and record.signal then
            cancels[key] = record.signal
        end
        named[key] = nil
    end
end
for key in pairs(named) do
    local record = read(key)
    if record and record.state == 'pending' then
        -- It was queued again while this node could not reach Redis, and no other node has started
        -- it.
        redis.call('ZREM', PENDING, record.queue_member)
        run(key, record, node)
        is_change = true
    elseif record then
        stop[key] = true  -- a job that Redis does not know goes on, as Redis may have lost it
    end
end

local first = ARGV[5] == '1' and redis.call('ZPOPMIN', PENDING)[1]
local key = first and string.sub(first, 17)
local record = key and read(key)
if record then
    record.starts = record.starts + 1
    run(key, record, node)
    count('started')
    is_change = true
end
if is_change then
    changed()
end
return cjson.encode({
    stop = stop,
    cancels = cancels,
    dead = dead,
    next_end = (leases[2] - NOW) / 1000,
    taken = record or nil,
})
