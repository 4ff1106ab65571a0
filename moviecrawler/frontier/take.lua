-- Lease requests to a worker, and tell it how the run is. It is the worker's heartbeat, too.
--
-- KEYS  as in run.lua, then 9 budget  10 circuit  11 start_urls
-- given.worker, given.lease (ms), given.deliveries
-- given.renew     ids whose leases the worker keeps
-- given.holds     whether it holds any request
-- given.want      how many it asks for
-- given.seeds     how many seeds may be moved to the queue
-- given.seeder    its claim to queue what the arguments name: a new name for each time, '' for none
-- given.claims    whether it may begin to, and not only keep its claim, which is lost with the state
-- given.seeded    whether it has queued all of it under that claim
-- Returns {JSON of what `Reply` holds, id, number of this delivery, ms until it may be sent, body, …}

local budget, circuit, start_urls = KEYS[9], KEYS[10], KEYS[11]

-- Redis that is out of memory refuses a script at its first write, unless that could only free some.
redis.call('ZREM', queue, '')

for _, id in ipairs(given.renew) do
    redis.call('ZADD', leases, 'XX', 'GT', now + given.lease, id)
end
redis.call('ZADD', workers, now + given.lease, given.worker)
redis.call('ZREMRANGEBYSCORE', workers, '-inf', now)

-- Seeds ----------------------------------------------------------------------------------------------------------------
local kind = redis.call('TYPE', start_urls).ok
if given.seeds > 0 and kind ~= 'none' then
    local popped, step = {}, 1
    if kind == 'list' then
        popped = redis.call('LPOP', start_urls, given.seeds)
    elseif kind == 'set' then
        popped = redis.call('SPOP', start_urls, given.seeds)
    elseif kind == 'zset' then
        popped, step = redis.call('ZPOPMAX', start_urls, given.seeds), 2  -- each with its score
    end
    for number = 1, #popped, step do
        local order = redis.call('HINCRBY', state, 'order', 1)
        local priority = tonumber(popped[number]:match('"priority"%s*:%s*(%d+)') or 0)
        local id = string.format('seed-%s%06d-%d', time[1], time[2], number)  -- of no other seed, whatever is lost
        put(id, priority >= 100 and 0 or 2, order, 0, popped[number])
        redis.call('HINCRBY', state, 'total', 1)
    end
end

-- What nobody holds any more -------------------------------------------------------------------------------------------
local buried = {}
for _, id in ipairs(redis.call('ZRANGEBYSCORE', leases, '-inf', now, 'LIMIT', 0, 500)) do
    local value = redis.call('HGET', requests, id)
    local _, deliveries = parse(value)
    if deliveries and deliveries >= given.deliveries then
        bury(id, value, 'handed out ' .. deliveries .. ' times, each time to a worker that died of it or with it')
        buried[#buried + 1] = id
    elseif value then
        put_back(id, value)
    else
        redis.call('ZREM', leases, id)
    end
end
if redis.call('ZCARD', queue) + redis.call('ZCARD', leases) < redis.call('HLEN', requests) then
    -- The queue or the leases were lost. A slice is looked at each time, as the whole could take seconds.
    local slice = redis.call('HSCAN', requests, redis.call('HGET', state, 'cursor') or 0, 'COUNT', 1000)
    redis.call('HSET', state, 'cursor', slice[1])
    for number = 1, #slice[2], 2 do
        local id = slice[2][number]
        if not redis.call('ZSCORE', queue, id) and not redis.call('ZSCORE', leases, id) then
            put_back(id, slice[2][number + 1])
        end
    end
end

-- Lease ----------------------------------------------------------------------------------------------------------------
local site = ask_site(budget, circuit)
local waiting, sharing, want = redis.call('ZCARD', queue), redis.call('ZCARD', workers), given.want
if site.shut > 0 then
    want = 0
elseif site.half_open then
    want = math.min(want, 1)
elseif sharing > 1 then
    -- The last ones are shared out, so that no worker has many while others have none.
    want = math.min(want, math.ceil(waiting / 2 / sharing))
end
local handed_out, taken = {}, 0
while taken < want do
    local id = redis.call('ZRANGE', queue, 0, 0)[1]
    local is_spent = given.per_day > 0 and site.used >= given.per_day
    if not id or is_spent or given.gap > 0 and site.start - now > 500 then
        break
    end
    local value = redis.call('HGET', requests, id)
    local level, deliveries, body = parse(value)
    if not value then
        redis.call('ZREM', queue, id)  -- it was lost
    elseif not level then
        bury(id, value, 'it is no request of this queue')
        buried[#buried + 1] = id
    elseif deliveries >= 2 and (given.holds or taken > 0) then
        break  -- it may be what killed two workers: others must not share its fate
    else
        taken = taken + 1
        redis.call('ZREM', queue, id)
        redis.call('ZADD', leases, now + given.lease, id)
        redis.call('HSET', requests, id, level .. ' ' .. deliveries + 1 .. ' ' .. given.worker .. '\n' .. body)
        for _, part in ipairs({id, deliveries + 1, charge(site, budget, circuit), body}) do
            handed_out[#handed_out + 1] = part
        end
        if deliveries >= 2 then
            break
        end
    end
end

-- Who queues what the arguments name -------------------------------------------------------------------------------------
local by, seeding_until = unpack(redis.call('HMGET', state, 'seeding_by', 'seeding_until'))
local seeded, seeding = redis.call('HEXISTS', state, 'seeded') == 1, false
if not seeded and given.seeded and by == given.seeder then
    redis.call('HSET', state, 'seeded', now)
    redis.call('HDEL', state, 'seeding_by', 'seeding_until')
    seeded = true
elseif not seeded and given.seeder ~= '' and (by == given.seeder or given.claims and (not by or seeding_until + 0 <= now)) then
    redis.call('HSET', state, 'seeding_by', given.seeder, 'seeding_until', now + given.lease)
    seeding = true
end

local open = end_step()
local total, done, failed = unpack(redis.call('HMGET', state, 'total', 'done', 'failed'))
return {cjson.encode({
    open = open,
    waiting = redis.call('ZCARD', queue),
    workers = sharing,
    seeded = seeded,
    seeding = seeding,
    total = total + 0,
    done = done + 0,
    failed = failed + 0,
    shut = site.shut,
    reason = site.reason,
    spent = site.spent,
    probing = site.half_open and taken > 0,
    start = math.max(0, math.ceil(site.start - now)),
    day = site.day,
    seeds_in = kind,
    buried = #buried > 0 and buried or nil,
}), unpack(handed_out)}
