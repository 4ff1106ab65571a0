-- A node's heartbeat: renew its lease, compare its jobs with those in Redis, queue the jobs of dead
-- nodes again, and hand out a job.
-- ARGV:
--   1  the node's id
--   2  JSON of its `NodeInfo`
--   3  whether that is news: 1 or 0
--   4  its lease (ms)
--   5  whether it takes a job: 1 or 0
--   6  its clock (ms)
--   7  how far its clock may differ from this one for it to take a job (ms)
--   8… its jobs, by their members of PENDING: one that is queued anew under its id is another one
-- Returns JSON of a `Beat`.

-- After this time, a job that this node was given, but does not name, is queued again.
local UNCLAIMED_SECONDS = 10
-- Pending jobs that a node looks at in one heartbeat: others come first where it has failed.
local MAX_SKIPPED = 100
local LOST_MS = 86400000
-- Return the name of a node, which its id begins with.
local function name_of(id)
    return string.match(id, '^(.*):[^:]*$') or id
end
local node = ARGV[1]
local node_info = ARGV[2]
local is_news = ARGV[3] == '1'
local lease_ms = tonumber(ARGV[4])
local takes_job = ARGV[5] == '1'
local clock_ahead_ms = tonumber(ARGV[6]) - NOW
local tolerance_ms = tonumber(ARGV[7])
local last_beat_at = tonumber(redis.call('GET', LAST_BEAT) or NOW)
if NOW - last_beat_at > lease_ms / 2 then
    -- No node sent a heartbeat: Redis was away, so all leases are renewed.
    for _, other in ipairs(redis.call('ZRANGE', NODES, 0, -1)) do
        redis.call('ZADD', NODES, NOW + lease_ms, other)
    end
end
redis.call('SET', LAST_BEAT, NOW)
redis.call('ZADD', NODES, NOW + lease_ms, node)
local is_new = redis.call('HSET', NODE_INFOS, node, node_info) == 1
local is_change = is_new or is_news
redis.call('ZREM', LOST, name_of(node))
redis.call('ZREMRANGEBYSCORE', LOST, '-inf', NOW - LOST_MS)
local dead = {}
for _, other in ipairs(redis.call('ZRANGEBYSCORE', NODES, '-inf', NOW)) do
    dead[other] = true
    is_change = true
    redis.call('ZREM', NODES, other)
    redis.call('HDEL', NODE_INFOS, other)
    redis.call('HINCRBY', COUNTERS, 'node_lost', 1)
    redis.call('ZADD', LOST, NOW, name_of(other))
end

local named = {}
local stop = {}
local cancels = {}
for i = 8, #ARGV do
    named[ARGV[i]] = key_of(ARGV[i])
end
local alive = {}
local leases = redis.call('ZRANGE', NODES, 0, -1, 'WITHSCORES')
for i = 1, #leases, 2 do
    alive[leases[i]] = true
end
local held = {}
for _, key in pairs(named) do
    held[key] = true
end
local running = redis.call('HGETALL', RUNNING)
for i = 1, #running, 2 do
    local key = running[i]
    local owner = running[i + 1]
    local record = read(key)
    local is_own = owner == node
    local is_lost = not alive[owner] or (is_own and not held[key])
    if not record then
        -- Redis has lost its record. Its node goes on, and records its end.
        if is_lost then
            redis.call('HDEL', RUNNING, key)
            is_change = true
        end
    elseif not alive[owner] then
        give_back(key, record, 'died', {reason = 'its node died'})
        is_change = true
    elseif is_own then
        local is_named = named[record.queue_member] ~= nil
        if not is_named and SECONDS - record.started_at > UNCLAIMED_SECONDS then
            give_back(key, record, 'handed_back', {reason = 'its node did not get it'})
            is_change = true
        elseif is_named and record.signal then
            cancels[record.queue_member] = record.signal
        end
        named[record.queue_member] = nil
    end
end
for member, key in pairs(named) do
    local record = read(key)
    local is_same = record and record.queue_member == member
    if is_same and record.state == 'pending' then
        -- It was queued again while this node could not reach Redis, and no other node has started
        -- it.
        redis.call('ZREM', PENDING, member)
        run(key, record, node)
        is_change = true
    elseif record then
        stop[member] = true  -- a job that Redis does not know goes on, as Redis may have lost it
    end
end

-- Return whether a node has failed to run a job.
local function has_failed_on(record, id)
    return record.failed_on ~= nil and record.failed_on[id] == true
end

-- Return whether each node that takes jobs has failed to run a job.
local function has_failed_everywhere(record)
    for _, text in ipairs(redis.call('HVALS', NODE_INFOS)) do
        local info = cjson.decode(text)
        local is_fit = next(info.unfit or {}) == nil
        if is_fit and not info.draining and not has_failed_on(record, info.id) then
            return false
        end
    end
    return true
end

-- Take the next job out of the queue; return its key and record.
local function next_job()
    local skipped = 0
    while skipped < MAX_SKIPPED do
        local member = redis.call('ZRANGE', PENDING, skipped, skipped)[1]
        if not member then
            return nil
        end
        local record = read(key_of(member))
        if not record or record.queue_member ~= member then
            redis.call('ZREM', PENDING, member)  -- Redis has lost its record
        elseif has_failed_on(record, node) and not has_failed_everywhere(record) then
            skipped = skipped + 1
        else
            redis.call('ZREM', PENDING, member)
            return key_of(member), record
        end
    end
end

-- Return the version of a project that was deployed last.
local function latest_version(project)
    local latest
    for _, text in ipairs(redis.call('HVALS', EGGS)) do
        local egg = cjson.decode(text)
        if egg.project == project and (not latest or egg.added_at > latest.added_at) then
            latest = egg
        end
    end
    return latest and latest.version
end

local taken
local is_clock_right = math.abs(clock_ahead_ms) < tolerance_ms
if takes_job and is_clock_right then
    local key, record = next_job()
    if record then
        record.starts = record.starts + 1
        record.version = record.version or record.job.version or latest_version(record.job.project)
        run(key, record, node)
        taken = record
        is_change = true
    end
end
if is_change then
    changed()
end
return cjson.encode({
    stop = stop,
    cancels = cancels,
    dead = dead,
    next_end = (leases[2] - NOW) / 1000,
    clock_ahead = clock_ahead_ms / 1000,
    taken = taken,
})
