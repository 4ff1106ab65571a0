-- A node's heartbeat: renew its lease, compare its jobs with those in Redis, and queue the jobs of dead nodes again.
-- ARGV: 1 the node's id, 2 its `NodeInfo`, 3 whether that is news, 4 its lease (ms), 5 after how many ms a job that was handed to it and that it
--       does not name goes back; then the keys of the jobs that it holds.
-- Returns the keys of jobs to stop, as another node runs them or they are over; keys, signals and numbers of cancellations; ids of dead
-- nodes.
local node, lease, now = ARGV[1], tonumber(ARGV[4]), now_ms()
local last = tonumber(redis.call('GET', LAST_BEAT) or now)
if now - last > lease / 2 then
    -- No heartbeat of any node came: Redis was away, and the nodes are not dead.
    for _, other in ipairs(redis.call('ZRANGE', NODES, 0, -1)) do
        redis.call('ZADD', NODES, now + lease, other)
    end
end
redis.call('SET', LAST_BEAT, now)
redis.call('ZADD', NODES, now + lease, node)
local is_change = redis.call('HSET', NODE_INFOS, node, ARGV[2]) == 1 or ARGV[3] == '1'
local dead = redis.call('ZRANGEBYSCORE', NODES, '-inf', now)
for _, other in ipairs(dead) do
    redis.call('ZREM', NODES, other)
    redis.call('HDEL', NODE_INFOS, other)
    count('node_lost')
end

local held, alive, is_running = {}, {}, {}
for i = 6, #ARGV do
    held[ARGV[i]] = true
end
for _, other in ipairs(redis.call('ZRANGE', NODES, 0, -1)) do
    alive[other] = true
end
local stop, cancels = {}, {}
local running = redis.call('HGETALL', RUNNING)
for i = 1, #running, 2 do
    local key, record = running[i], cjson.decode(running[i + 1])
    is_running[key] = true
    if not alive[record.node] then
        give_back(key, record, 'died', 'its node died')
        is_change, is_running[key] = true, nil
    elseif record.node ~= node then
        if held[key] then
            stop[#stop + 1] = key
        end
    elseif not held[key] then
        if now - record.at > tonumber(ARGV[5]) then
            give_back(key, record, 'handed_back', '')  -- it was handed to this node, which did not get the answer
            is_change = true
        end
    elseif record.signal then
        for _, part in ipairs({key, record.signal, record.cancels}) do
            cancels[#cancels + 1] = part
        end
    end
end
for key in pairs(held) do
    if not is_running[key] then
        local place = redis.call('HGET', PLACES, key)
        local score = place and redis.call('ZSCORE', PENDING, place)
        if score then
            -- It was queued again while this node was not heard, and no other node has started it.
            redis.call('ZREM', PENDING, place)
            run_by(key, node, score)
            is_change = true
        elseif redis.call('HEXISTS', JOBS, key) == 1 then
            stop[#stop + 1] = key  -- Redis may have lost a job that it does not know: that one goes on
        end
    end
end
if is_change or #dead > 0 then
    changed()
end
return {stop, cancels, dead}
