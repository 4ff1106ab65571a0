-- Functions that the scripts of this folder share; this file is put before each of them.
-- KEYS: as named here (see keys.py).
local PENDING, PLACES, JOBS, RUNNING, STARTS, DEATHS, FINISHED, OUTCOMES,
    NODES, NODE_INFOS, LAST_BEAT, COUNTERS, CHANGED = unpack(KEYS)
local MAX_PENDING, MAX_FINISHED = 100000, 1000
local MAX_DEATHS = 6  -- one more than the deaths after which the frontier buries the request that kills its workers
local DAY_MS = 86400000

local function now_ms()
    local time = redis.call('TIME')
    return time[1] * 1000 + math.floor(time[2] / 1000)
end

local function changed()
    redis.call('SET', CHANGED, table.concat(redis.call('TIME'), '.'))
end

local function count(event)
    redis.call('HINCRBY', COUNTERS, event, 1)
end

local function run_by(key, node, score)
    redis.call('HSET', RUNNING, key, cjson.encode({node = node, score = score, at = now_ms()}))
end

-- Keep a job's outcome, of the newest jobs.
local function finish(key, event, outcome)
    for _, hash in ipairs({PLACES, RUNNING, DEATHS}) do
        redis.call('HDEL', hash, key)
    end
    redis.call('ZADD', FINISHED, now_ms(), key)
    redis.call('HSET', OUTCOMES, key, outcome)
    count(event)
    local excess = redis.call('ZCARD', FINISHED) - MAX_FINISHED
    local oldest = excess > 0 and redis.call('ZPOPMIN', FINISHED, excess) or {}
    for i = 1, #oldest, 2 do
        for _, hash in ipairs({OUTCOMES, JOBS, STARTS}) do
            redis.call('HDEL', hash, oldest[i])
        end
    end
end

local function finish_for(key, event, node, started_at, reason)
    finish(key, event, cjson.encode({node = node, started_at = started_at, ended_at = now_ms(), reason = reason}))
end

-- Queue a job again at its former place, unless it is to be cancelled or has died too often.
-- `how`: 'died', 'recycled' or 'handed_back'; `why`: the reason of its death.
local function give_back(key, record, how, why)
    if record.signal then
        return finish_for(key, 'cancelled', record.node, record.at, 'cancelled')
    end
    count(how)
    if how == 'recycled' or now_ms() - record.at > DAY_MS then
        redis.call('HDEL', DEATHS, key)  -- it gets somewhere, and a job that runs for months may see some nodes die
    end
    if how == 'died' and redis.call('HINCRBY', DEATHS, key, 1) > MAX_DEATHS then
        local reason = 'gave up: it was started ' .. (MAX_DEATHS + 1) .. ' times; the last end: ' .. why
        return finish_for(key, 'gave_up', record.node, record.at, reason)
    end
    redis.call('HDEL', RUNNING, key)
    redis.call('ZADD', PENDING, record.score, redis.call('HGET', PLACES, key))
end
