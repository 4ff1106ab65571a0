-- Taking over the runs of a site that an earlier version has left, whose keys were named otherwise:
-- they began with `{site}:<name>:<number>:`.

local EARLIER_OF_RUN = {
    'state', 'queue', 'leases', 'requests', 'seen', 'dead', 'titles', 'workers'
}
local EARLIER_SITE = '{' .. (given.site or '') .. '}:'
-- ZSET of that version: `<name>:<number>` of a run → when it was last joined (ms).
local EARLIER_RUNS = EARLIER_SITE .. 'runs'
local TAKEN_OVER = "%d open requests and %d dead letters of run '%s', which an earlier version has"
    .. ' left, were taken over; the command of that run, or one with FRONTIER_RUN=%s, goes on with'
    .. ' them'

-- Return the requests of an earlier run as those of the run that was taken over already.
local function merge(from, into)
    local requests = redis.call('HGETALL', from .. 'requests')
    for position = 1, #requests, 2 do
        local id = requests[position]
        if redis.call('HSETNX', into.requests, id, requests[position + 1]) == 1 then
            redis.call('HINCRBY', into.state, 'requested', 1)
        end
    end
    local letters = redis.call('HGETALL', from .. 'dead')
    for position = 1, #letters, 2 do
        redis.call('HSETNX', into.dead, letters[position], letters[position + 1])
    end
    for _, name in ipairs(EARLIER_OF_RUN) do
        redis.call('UNLINK', from .. name)
    end
end

local function move(from, into, number)
    for _, name in ipairs(EARLIER_OF_RUN) do
        if redis.call('EXISTS', from .. name) == 1 then
            redis.call('RENAME', from .. name, into[name])
        end
    end
    local state = redis.call('HMGET', into.state, 'total', 'done', 'failed')
    redis.call('HSET', into.state, 'requested', state[1] or 0, 'titles', 0)
    redis.call('HSET', into.state, 'read', state[2] or 0, 'dead', state[3] or 0)
    redis.call('HSET', into.state, 'started_at', number)
    redis.call('HDEL', into.state, 'total', 'done', 'failed')
    redis.call('PERSIST', into.dead)
    redis.call('PEXPIRE', into.dead, 30 * DAY_MS)
end

-- Return a sentence for each run that had something left.
local function take_over()
    local remarks = {}
    for _, member in ipairs(redis.call('ZREVRANGE', EARLIER_RUNS, 0, -1)) do
        local name, number = member:match('^(.*):(%d+)$')
        local from = EARLIER_SITE .. name .. ':' .. number .. ':'
        local into = keys_of(given.site, name)
        local open = redis.call('HLEN', from .. 'requests')
        local dead = redis.call('HLEN', from .. 'dead')
        if redis.call('EXISTS', into.state) == 1 then
            merge(from, into)
        elseif redis.call('EXISTS', from .. 'state', from .. 'dead') > 0 then
            move(from, into, number)
        end
        redis.call('UNLINK', EARLIER_SITE .. name .. ':latest')
        if open + dead > 0 then
            redis.call('ZADD', keys.runs, now, name)
            remarks[#remarks + 1] = TAKEN_OVER:format(open, dead, name, name)
        end
    end
    for _, name in ipairs({'budget', 'circuit'}) do
        if redis.call('EXISTS', EARLIER_SITE .. name) == 1 then
            redis.call('RENAME', EARLIER_SITE .. name, keys[name])
        end
    end
    redis.call('DEL', EARLIER_RUNS)
    return remarks
end
