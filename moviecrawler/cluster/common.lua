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
local STATE_VERSION = KEYS[9]
local EGGS = KEYS[10]
local LOST = KEYS[11]
local MAX_PENDING = 100000
local MAX_FINISHED = 1000
-- Starts of a job that are remembered one by one: the first and the latest.
local MAX_HISTORY = 50
-- One more than the deaths after which the frontier buries the request that kills its workers.
local MAX_DEATHS = 6
local FIGURES = {'items', 'errors', 'pages', 'bytes'}
local TIME = redis.call('TIME')
local NOW = TIME[1] * 1000 + math.floor(TIME[2] / 1000)  -- ms
local SECONDS = TIME[1] + TIME[2] / 1000000

-- Return a job's record; nil when there is none, as Redis may have lost it.
local function read(key)
    local text = redis.call('HGET', JOBS, key)
    return text and cjson.decode(text)
end

local function write(key, record)
    redis.call('HSET', JOBS, key, cjson.encode(record))
end

-- Return the key of a job from its member of PENDING, which begins with the time in 16 digits.
local function key_of(member)
    return string.sub(member, 17)
end

local function changed()
    redis.call('SET', STATE_VERSION, table.concat(TIME, '.'))
end

-- Count a job's result; see RESULTS in state.py.
local function count(result, record)
    redis.call('HINCRBY', COUNTERS, result .. '/' .. record.job.spider, 1)
end

-- Note that a job runs on a node. A node that was cut off goes on with the start that it has.
local function run(key, record, node)
    record.state = 'running'
    record.node_id = node
    record.started_at = SECONDS
    record.history = record.history or {}
    local last = record.history[#record.history]
    if last and last.ended_at and last.number == record.starts and last.node_id == node then
        record.started_at = last.started_at
        record.seconds = (record.seconds or 0) - (last.ended_at - last.started_at)
        last.ended_at = nil
        last.how = nil
        last.reason = nil
    else
        table.insert(record.history, {
            number = record.starts,
            node_id = node,
            started_at = SECONDS,
        })
        if #record.history > MAX_HISTORY then
            table.remove(record.history, 2)
        end
    end
    redis.call('HSET', RUNNING, key, node)
    write(key, record)
end

-- Note how a start of a job ended, and add its figures to those of the starts before.
-- `outcome`: what its node reports of it; `reason` alone when the node is gone.
local function end_start(record, how, outcome)
    local last = record.history and record.history[#record.history]
    if not last or last.ended_at then
        return
    end
    last.ended_at = SECONDS
    last.how = how
    last.reason = outcome.reason
    record.seconds = (record.seconds or 0) + SECONDS - last.started_at
    record.totals = record.totals or {}
    for _, figure in ipairs(FIGURES) do
        if outcome[figure] then
            record.totals[figure] = (record.totals[figure] or 0) + outcome[figure]
        end
    end
end

-- Keep the outcome of a job, with the figures of all its starts, and delete that of the oldest one.
local function finish(key, record, how, outcome)
    end_start(record, how, outcome)
    for figure, total in pairs(record.totals or {}) do
        outcome[figure] = total
    end
    outcome.ended_at = SECONDS
    outcome.seconds = record.seconds or 0
    record.state = 'finished'
    record.outcome = outcome
    write(key, record)
    redis.call('HDEL', RUNNING, key)
    redis.call('ZREM', PENDING, record.queue_member)
    redis.call('ZADD', FINISHED, NOW, key)
    count(outcome.result or 'failed', record)
    if redis.call('ZCARD', FINISHED) > MAX_FINISHED then
        redis.call('HDEL', JOBS, redis.call('ZPOPMIN', FINISHED)[1])
    end
end

-- Queue a job again at its former position, unless it is to be cancelled, has died too often, or
-- has failed on its node before.
-- `how`: 'died', 'recycled', 'handed_back' or 'node_failed'.
local function give_back(key, record, how, outcome)
    if record.signal then
        outcome.reason = 'cancelled'
        outcome.result = 'cancelled'
        return finish(key, record, 'cancelled', outcome)
    end
    if how == 'recycled' or SECONDS - record.started_at > 86400 then
        record.deaths = 0  -- it makes progress, and during a job of months some nodes may die
    end
    if how == 'died' then
        count('died', record)
        record.deaths = (record.deaths or 0) + 1
        if record.deaths > MAX_DEATHS then
            outcome.reason = 'gave up: it was started ' .. record.deaths
                .. ' times; the last end: ' .. outcome.reason
            outcome.result = 'gave_up'
            return finish(key, record, 'died', outcome)
        end
    end
    if how == 'node_failed' then
        record.failed_on = record.failed_on or {}
        if record.failed_on[record.node_id] then
            return finish(key, record, how, outcome)
        end
        record.failed_on[record.node_id] = true
    end
    end_start(record, how, outcome)
    record.state = 'pending'
    record.node_id = nil
    record.started_at = nil
    write(key, record)
    redis.call('HDEL', RUNNING, key)
    redis.call('ZADD', PENDING, -(record.job.priority or 0), record.queue_member)
end
