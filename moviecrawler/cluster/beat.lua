-- A node's heartbeat: renew its lease, compare what it runs with what is known, and give back what dead nodes held.
-- ARGV: 1 JSON with `node` (id), `info` (JSON of it), `lease` (ms), `forgotten` (ms), `jobs` (keys that it runs or starts),
--       `max_deaths`, `keep`; 2 the channel of events.
-- Returns keys that the node must stop, as they are another's or over; keys of which nothing is known; keys, signals and
-- numbers of cancellations; ids of nodes that were found dead; what was damaged.
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
    -- Nobody's came: Redis was away, and they are not all dead.
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
        -- It was handed to this node, whom the answer did not reach.
        give_back(key, record, 'handed_back', '', beat.max_deaths, beat.keep)
        given_back = true
    elseif not mine and not redis.call('ZSCORE', NODES, record.node) then
        give_back(key, record, 'died', 'its node died', beat.max_deaths, beat.keep)
        given_back = true
    elseif mine and runs[key] and record.signal then
        cancels[#cancels + 1] = key
        cancels[#cancels + 1] = record.signal
        cancels[#cancels + 1] = record.cancels
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
            -- It was given back while this node could not be heard, and nobody has begun it.
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
