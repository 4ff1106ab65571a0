-- Take over the runs of a site that an earlier version has left, whose keys were named otherwise.
--
-- KEYS  1 the earlier ZSET of runs, `<name>:<number>` → when a worker last joined it
-- given.earlier, given.present  the beginnings of the keys' names, then and now
-- given.of_run, given.of_site   the ends of the names of the keys of a run, and of a site
-- Returns the JSON of name, open and dead of each run that had something left

-- Return the requests of an earlier run as those of the run that was taken over already.
local function merge(from, into)
    local requests = redis.call('HGETALL', from .. 'requests')
    for position = 1, #requests, 2 do
        local id = requests[position]
        if redis.call('HSETNX', into .. 'requests', id, requests[position + 1]) == 1 then
            redis.call('HINCRBY', into .. 'state', 'requested', 1)
        end
    end
    local letters = redis.call('HGETALL', from .. 'dead')
    for position = 1, #letters, 2 do
        redis.call('HSETNX', into .. 'dead', letters[position], letters[position + 1])
    end
    for _, name in ipairs(given.of_run) do
        redis.call('UNLINK', from .. name)
    end
end

local function move(from, into, number)
    for _, name in ipairs(given.of_run) do
        if redis.call('EXISTS', from .. name) == 1 then
            redis.call('RENAME', from .. name, into .. name)
        end
    end
    local state = redis.call('HMGET', into .. 'state', 'total', 'done', 'failed')
    redis.call('HSET', into .. 'state', 'requested', state[1] or 0, 'titles', 0)
    redis.call('HSET', into .. 'state', 'read', state[2] or 0, 'dead', state[3] or 0)
    redis.call('HSET', into .. 'state', 'started_at', number)
    redis.call('HDEL', into .. 'state', 'total', 'done', 'failed')
    redis.call('PERSIST', into .. 'dead')
    redis.call('PEXPIRE', into .. 'dead', 30 * DAY_MS)
end

local taken_over = {}
for _, member in ipairs(redis.call('ZREVRANGE', KEYS[1], 0, -1)) do
    local name, number = member:match('^(.*):(%d+)$')
    local from = given.earlier .. name .. ':' .. number .. ':'
    local into = given.present .. name .. ':'
    local open = redis.call('HLEN', from .. 'requests')
    local dead = redis.call('HLEN', from .. 'dead')
    if redis.call('EXISTS', into .. 'state') == 1 then
        merge(from, into)
    elseif redis.call('EXISTS', from .. 'state', from .. 'dead') > 0 then
        move(from, into, number)
    end
    redis.call('UNLINK', given.earlier .. name .. ':latest')
    if open + dead > 0 then
        redis.call('ZADD', given.present .. 'runs', now, name)
        taken_over[#taken_over + 1] = cjson.encode({name = name, open = open, dead = dead})
    end
end
for _, name in ipairs(given.of_site) do
    if redis.call('EXISTS', given.earlier .. name) == 1 then
        redis.call('RENAME', given.earlier .. name, given.present .. name)
    end
end
redis.call('DEL', KEYS[1])
return taken_over
