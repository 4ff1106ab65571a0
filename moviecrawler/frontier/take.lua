-- Leasing requests to a worker. It is the worker's heartbeat, too.

local BOOSTED = 0
local BOOST_PRIORITY = 100
local ARGUMENTS = 'arguments-'
local WRONG_TYPE = 'the key %s of Redis is a %s, and no seed is taken from it; push seeds to a'
    .. ' list, a set or a sorted set'
local POPS = {list = 'LPOP', set = 'SPOP', zset = 'ZPOPMAX'}

-- The arguments' worker may hold them as long as the run lasts: its death says nothing of them.
local function is_arguments(id)
    return id:sub(1, #ARGUMENTS) == ARGUMENTS
end

local function lease_until()
    return now + math.floor(given.worker.lease_seconds * 1000)
end

-- Move as many seeds as the worker asks for to the queue. They leave the list of whoever pushed
-- them only while the site may be asked. Return a sentence when their key is of another type.
local function take_seeds(site)
    local kind = redis.call('TYPE', keys.start_urls).ok
    local pop = POPS[kind]
    if pop and given.want > 0 and site.blocked == 0 then
        local most = site.state == 'half_open' and 1 or given.want
        local popped = redis.call(pop, keys.start_urls, most)
        local step = pop == 'ZPOPMAX' and 2 or 1  -- in a sorted set, each is followed by its score
        for number = 1, #popped, step do
            local seed = popped[number]
            local priority = tonumber(seed:match('"priority"%s*:%s*(%d+)') or 0)
            -- An id that is new even when the state was lost.
            local id = string.format('seed-%s%06d-%d', time[1], time[2], number)
            local level = priority >= BOOST_PRIORITY and BOOSTED or TITLES
            put(id, level, microseconds + number, 0, true, seed)
            add('requested', 1)
            add('titles', 1)
        end
    end
    if not pop and kind ~= 'none' then
        return WRONG_TYPE:format(keys.start_urls, kind)
    end
end

-- Queue again what dead workers held; return what they have died of too often.
local function end_leases()
    local new_dead_letters = {}
    for _, id in ipairs(redis.call('ZRANGEBYSCORE', keys.leases, '-inf', now, 'LIMIT', 0, 500)) do
        local value = redis.call('HGET', keys.requests, id)
        if not value then
            redis.call('ZREM', keys.leases, id)
        else
            local _, deliveries = parse(value)
            if deliveries < given.worker.deliveries or is_arguments(id) then
                put_back(id, value)
            else
                local reason = 'handed out ' .. deliveries
                    .. ' times, each time to a worker that died before it was done'
                make_dead_letter(id, value, reason)
                new_dead_letters[#new_dead_letters + 1] = id
            end
        end
    end
    return new_dead_letters
end

-- Queue again requests that the queue or the leases have lost. Each step searches a part, as the
-- whole could take seconds.
local function find_lost()
    local placed = redis.call('ZCARD', keys.queue) + redis.call('ZCARD', keys.leases)
    if placed < redis.call('HLEN', keys.requests) then
        local cursor = redis.call('HGET', keys.state, 'cursor') or 0
        local slice = redis.call('HSCAN', keys.requests, cursor, 'COUNT', 1000)
        redis.call('HSET', keys.state, 'cursor', slice[1])
        for position = 1, #slice[2], 2 do
            local id = slice[2][position]
            local is_queued = redis.call('ZSCORE', keys.queue, id)
            if not is_queued and not redis.call('ZSCORE', keys.leases, id) then
                put_back(id, slice[2][position + 1])
            end
        end
    end
end

-- Return the deliveries of up to `given.want` requests.
local function lease(site)
    -- Leave some of the last requests to the other workers.
    local want = given.want
    local sharing = redis.call('ZCARD', keys.workers)
    if site.state == 'half_open' then
        want = math.min(want, 1)
    elseif sharing > 1 then
        want = math.min(want, math.ceil(redis.call('ZCARD', keys.queue) / 2 / sharing))
    end

    local handed_out = {}
    while #handed_out < want do
        local first = redis.call('ZRANGE', keys.queue, 0, 0, 'WITHSCORES')
        local id = first[1]
        local is_off_site = id and tonumber(first[2]) < 0
        if not id or (site.blocked > 0 and not is_off_site) then
            break
        end
        local value = redis.call('HGET', keys.requests, id)
        if value then
            local level, deliveries, is_title, body = parse(value)
            if deliveries >= given.terms.deliveries_alone and not is_arguments(id) then
                -- It may have killed two workers, so that a worker takes it alone.
                if not given.is_idle or #handed_out > 0 then
                    break
                end
                want = 1
            end
            local flag = is_title and 't' or '-'
            local leased = level .. ' ' .. deliveries + 1 .. ' ' .. flag .. '\n' .. body
            redis.call('ZADD', keys.leases, lease_until(), id)
            redis.call('HSET', keys.requests, id, leased)
            handed_out[#handed_out + 1] = {id = id, number = deliveries + 1, text = body}
        end
        redis.call('ZREM', keys.queue, id)  -- also when `requests` has lost it
    end
    return handed_out
end

-- given.worker; given.renew: ids of the requests whose leases it renews; given.is_idle: whether it
-- holds none but the arguments; given.want: how many more it asks for
-- Return a `Reply`.
function steps.take()
    recover_if_lost()
    redis.call('ZREM', keys.queue, '')  -- see finish.lua
    for _, id in ipairs(given.renew) do
        redis.call('ZADD', keys.leases, 'XX', 'GT', lease_until(), id)
    end
    redis.call('ZADD', keys.workers, lease_until(), given.worker.name)
    redis.call('ZREMRANGEBYSCORE', keys.workers, '-inf', now)
    move_site_back()
    local site = ask_site()
    local remark = take_seeds(site)
    local new_dead_letters = end_leases()
    find_lost()
    local deliveries = lease(site)
    return {
        site = site,
        account = read_account(keys.state, end_step()),
        deliveries = list(deliveries),
        new_dead_letters = list(new_dead_letters),
        remarks = list({remark}),
        was_lost = redis.call('HDEL', keys.state, 'was_lost') == 1,
    }
end
