-- Functions that all scripts of this folder share; this file is put before each of them.
-- KEYS: as named here; see keys.py.
local PENDING = KEYS[1]
local JOBS = KEYS[2]
local RUNNING = KEYS[3]
local FINISHED = KEYS[4]
local NODES = KEYS[5]
local NODE_INFOS = KEYS[6]
local LAST_BEAT = KEYS[7]
local COUNTERS = KEYS[8]
local CHANGED = KEYS[9]
local MAX_PENDING = 100000
local MAX_FINISHED = 1000
-- One more than the deaths after which the frontier buries the request that kills its workers.
local MAX_DEATHS = 6
local TIME = redis.call('TIME')
local NOW = TIME[1] * 1000 + math.floor(TIME[2] / 1000)  -- ms
local SECONDS = NOW / 1000

local function read(key)
    local text = redis.call('HGET', JOBS, key)
    return text and cjson.decode(text)
end

local function write(key, record)
    redis.call('HSET', JOBS, key, cjson.encode(record))
end

local function changed()
    redis.call('SET', CHANGED, table.concat(TIME, '.'))
end

local function count(event)
    redis.call('HINCRBY', COUNTERS, event, 1)
end

local function run(key, record, node)
    record.state = 'running'
    record.node_id = node
    record.started_at = SECONDS
    redis.call('HSET', RUNNING, key, node)
    write(key, record)
end

-- Keep the outcome of a job, and delete that of the oldest one.
local function finish(key, record, event, outcome)
    record.started_at = record.started_at or SECONDS
    outcome.ended_at = SECONDS
    outcome.seconds = SECONDS - record.started_at
    record.state = 'finished'
    record.outcome = outcome
    write(key, record)
    redis.call('HDEL', RUNNING, key)
    redis.call('ZADD', FINISHED, NOW, key)
    count(event)
    if redis.call('ZCARD', FINISHED) > MAX_FINISHED then
        redis.call('HDEL', JOBS, redis.call('ZPOPMIN', FINISHED)[1])
    end
end

-- Queue a job again at its former position, unless it is to be cancelled or has died too often.
-- `how`: 'died', 'recycled' or 'handed_back'; `why`: the reason of its death.
local function give_back(key, record, how, why)
    if record.signal then
        return finish(key, record, 'cancelled', {reason = 'cancelled'})
    end
    count(how)
    if how == 'recycled' or SECONDS - record.started_at > 86400 then
        record.deaths = 0  -- it makes progress, and during a job of months some nodes may die
    end
    if how == 'died' then
        record.deaths = record.deaths + 1
        if record.deaths > MAX_DEATHS then
            local reason = 'gave up: it was started ' .. record.deaths
                .. ' times; the last end: ' .. why
            return finish(key, record, 'gave_up', {reason = reason})
        end
    end
    record.state = 'pending'
    record.node_id = nil
    record.started_at = nil
    write(key, record)
    redis.call('HDEL', RUNNING, key)
    redis.call('ZADD', PENDING, record.score, record.queue_member)
end
