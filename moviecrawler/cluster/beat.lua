-- A node's heartbeat: renew its lease, compare its jobs with those in Redis, and queue the jobs of dead nodes again.
-- ARGV: 1 JSON with `node` (id), `info` (JSON of it), `lease` (ms), `forgotten` (ms), `jobs` (keys that it runs or starts),
--       `max_deaths`, `keep`; 2 the channel of events.
-- Returns the keys of jobs to stop, as another node runs them or they are finished; keys of unknown jobs; keys, signals and
-- numbers of cancellations; ids of dead nodes; damaged data.
local beat = cjson.decode(ARGV[1])
local now = now_ms()
local function lease_of(node)
    redis.call('ZADD', NODES, now + beat.lease, node)
end

local TYPES = {
    [PENDING] = 'zset', [SEQUENCE] = 'string', [JOBS] = 'hash', [PLACES] = 'hash', [RUNNING] = 'hash', [DEATHS] = 'hash',
    [CANCELLED] = 'zset', [FINISHED] = 'zset', [RESULTS] = 'hash', [NODES] = 'zset', [NODE_INFOS] = 'hash', [LAST_BEAT] = 'string',
    [COUNTERS] = 'hash', [STARTS] = 'hash',
}
for key, expected in pairs(TYPES) do
    local found = redis.call('TYPE', key).ok
    if found ~= expected and found ~= 'none' then
        redis.call('RENAME', key, key .. ':damaged')
        damaged[#damaged + 1] = key .. ', which is a ' .. found .. ' and now called ' .. key .. ':damaged'
    end
end

local last = tonumber(redis.call('GET', LAST_BEAT))
if last and now - last > beat.lease / 2 then
    -- No heartbeat of any node came: Redis was unreachable, and the nodes are not dead.
    for _, node in ipairs(redis.call('ZRANGE', NODES, 0, -1)) do
        lease_of(node)
    end
end
redis.call('SET', LAST_BEAT, now)
lease_of(beat.node)
redis.call('HSET', NODE_INFOS, beat.node, beat.info)
redis.call('ZREMRANGEBYSCORE', CANCELLED, '-inf', now)

local dead = redis.call('ZRANGEBYSCORE', NODES, '-inf', now)
for _, node in ipairs(dead) do
    redis.call('ZREM', NODES, node)
    redis.call('HDEL', NODE_INFOS, node)
    count('node_lost')
end

local runs = {}
for _, key in ipairs(beat.jobs) do
    runs[key] = true
end
local stop, unknown, cancels = {}, {}, {}
local given_back = false
for _, key in ipairs(redis.call('HKEYS', RUNNING)) do
    local record = record_of(key)
    local mine = record and record.node == beat.node
    if not record then
        given_back = true
    elseif mine and not runs[key] and now - record.at > beat.forgotten then
        -- It was handed to this node, which did not get the answer.
        give_back(key, record, 'handed_back', '', beat.max_deaths, beat.keep)
        given_back = true
    elseif not mine and not redis.call('ZSCORE', NODES, record.node) then
        give_back(key, record, 'died', 'its node died', beat.max_deaths, beat.keep)
        given_back = true
    elseif mine and runs[key] and record.signal then
        cancels[#cancels + 1] = key
        cancels[#cancels + 1] = record.signal
        cancels[#cancels + 1] = record.cancels or 1
    end
end
for _, key in ipairs(beat.jobs) do
    local record = record_of(key)
    if record then
        if record.node ~= beat.node then
            stop[#stop + 1] = key
        end
    else
        local place = redis.call('HGET', PLACES, key)
        local score = place and redis.call('ZSCORE', PENDING, place)
        if score then
            -- It was queued again while this node was unreachable, and no other node has started it.
            redis.call('ZREM', PENDING, place)
            redis.call('HSET', RUNNING, key, cjson.encode({node = beat.node, score = score, at = now}))
        elseif redis.call('ZSCORE', CANCELLED, key) or redis.call('HEXISTS', RESULTS, key) == 1 then
            stop[#stop + 1] = key
        else
            unknown[#unknown + 1] = key
        end
    end
end
if given_back then
    redis.call('PUBLISH', ARGV[2], 'wake')
end
return {stop, unknown, cancels, dead, damaged}
