-- Functions that the scripts of this folder share; this file is put before each of them.
-- KEYS: as named here (see keys.py).
local PENDING, SEQUENCE, JOBS, PLACES, RUNNING, DEATHS, CANCELLED, FINISHED, RESULTS, NODES, NODE_INFOS, LAST_BEAT, COUNTERS, STARTS =
    unpack(KEYS)

local function now_ms()
    local time = redis.call('TIME')
    return time[1] * 1000 + math.floor(time[2] / 1000)
end

local damaged = {}  -- what could not be read and was dropped, in words

-- Add 1 to a field of a hash; a field that is no number starts again at 1.
local function add(hash, field)
    local before = redis.call('HGET', hash, field)
    if before and not (before:match('^%-?%d+$') and #before < 17) then
        redis.call('HDEL', hash, field)
        damaged[#damaged + 1] = field .. ' in ' .. hash
    end
    return redis.call('HINCRBY', hash, field, 1)
end

local function count(name)
    add(COUNTERS, name)
end

-- Record that a node starts a job; return how often it was started.
local function started(key, node)
    local known = redis.call('HGET', STARTS, key)
    local read, starts = pcall(cjson.decode, known or '[]')
    local last = read and type(starts) == 'table' and starts[#starts]
    if not (last and type(last) == 'table' and type(last.number) == 'number') then
        starts, last = {}, {number = 0}  -- there are none yet, or none that can be read
    end
    local number = last.number + 1
    starts[#starts + 1] = {node = node, at = now_ms(), number = number}
    if #starts > 100 then
        table.remove(starts, 1)
    end
    redis.call('HSET', STARTS, key, cjson.encode(starts))
    return number
end

-- Return a job's place in the queue: when it was queued (µs since 1970, 16 digits, each only once), and its key.
local function place_of(key)
    local time = redis.call('TIME')
    local at = math.max(time[1] * 1000000 + time[2], (tonumber(redis.call('GET', SEQUENCE) or 0) or 0) + 1)
    redis.call('SET', SEQUENCE, string.format('%.0f', at))
    return string.format('%016.0f', at) .. key
end

-- Return the record of a running job; nil for another. A damaged record is dropped, and the job is queued again unless its node names it in
-- a heartbeat.
local function record_of(key)
    local raw = redis.call('HGET', RUNNING, key)
    if not raw then
        return nil
    end
    local read, record = pcall(cjson.decode, raw)
    if read and type(record) == 'table' and type(record.node) == 'string' and type(record.at) == 'number' and tonumber(record.score) then
        record.signal = type(record.signal) == 'string' and record.signal or nil
        record.cancels = tonumber(record.cancels)
        return record
    end
    damaged[#damaged + 1] = key .. ' in ' .. RUNNING
    redis.call('HDEL', RUNNING, key)
    local place, spec = redis.call('HGET', PLACES, key), redis.call('HGET', JOBS, key)
    if place then
        local known, job = pcall(cjson.decode, spec or '')
        local priority = known and type(job) == 'table' and tonumber(job.priority) or 0
        redis.call('ZADD', PENDING, -priority, place)
    end
    return nil
end

local function forget(key)
    redis.call('HDEL', JOBS, key)
    redis.call('HDEL', PLACES, key)
    redis.call('HDEL', DEATHS, key)
    redis.call('HDEL', RUNNING, key)
end

-- Keep a job's outcome, of the newest `keep` jobs.
local function finish(key, outcome, keep)
    local spec = redis.call('HGET', JOBS, key)
    forget(key)
    if not spec then
        return
    end
    redis.call('ZADD', FINISHED, now_ms(), key)
    redis.call('HSET', RESULTS, key, outcome .. '\n' .. spec)
    local excess = redis.call('ZCARD', FINISHED) - keep
    if excess > 0 then
        local oldest = redis.call('ZPOPMIN', FINISHED, excess)
        for i = 1, #oldest, 2 do
            redis.call('HDEL', RESULTS, oldest[i])
            if redis.call('HEXISTS', JOBS, oldest[i]) == 0 then
                redis.call('HDEL', STARTS, oldest[i])
            end
        end
    end
end

local function told(record, reason)
    return cjson.encode({node = record.node, started_at = record.at, ended_at = now_ms(), reason = reason})
end

-- Queue a job again at its former place, unless it is to be cancelled or has died too often.
-- `how`: 'died', 'recycled' or 'handed_back'; `why`: the reason of its death.
local function give_back(key, record, how, why, max_deaths, keep)
    if record.signal then
        finish(key, told(record, 'cancelled'), keep)
        count('cancelled')
        return
    end
    count(how)
    if how == 'recycled' or now_ms() - record.at > 86400000 then
        redis.call('HDEL', DEATHS, key)  -- it gets somewhere, and a job that runs for months may see some nodes die
    end
    if how == 'died' and add(DEATHS, key) > max_deaths then
        finish(key, told(record, 'gave up: it was started ' .. (max_deaths + 1) .. ' times; the last end: ' .. why), keep)
        count('gave_up')
        return
    end
    redis.call('HDEL', RUNNING, key)
    local place = redis.call('HGET', PLACES, key)
    if place then
        redis.call('ZADD', PENDING, record.score, place)
    end
end

-- Queue a job, once. Returns 1; 0 when a job of that key, but with other contents, is pending or running; -1 when `most` are pending.
local function queue(key, spec, score, most, events)
    local known = redis.call('HGET', JOBS, key)
    if known then
        return known == spec and 1 or 0
    end
    if redis.call('ZCARD', PENDING) >= tonumber(most) then
        return -1
    end
    local place = place_of(key)
    redis.call('HSET', JOBS, key, spec)
    redis.call('HSET', PLACES, key, place)
    redis.call('ZADD', PENDING, score, place)
    redis.call('ZREM', CANCELLED, key)
    redis.call('ZREM', FINISHED, key)
    redis.call('HDEL', RESULTS, key)
    count('scheduled')
    redis.call('PUBLISH', events, 'wake')
    return 1
end
