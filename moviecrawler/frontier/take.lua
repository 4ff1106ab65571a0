-- Lease requests to a worker, and return the state of the run. It is the worker's heartbeat, too.
--
-- KEYS  as in run.lua, then 14 start_urls
-- given.worker, given.lease (ms), given.deliveries (after which a request is a dead letter)
-- given.renew  ids of the requests whose leases the worker renews
-- given.is_idle  whether it holds none but the arguments
-- given.want   how many more it asks for; as many seeds are moved to the queue
-- Returns {JSON of a `Reply`, with wrong_type (of the key of seeds) and was_lost,
--          the bodies of its deliveries, which may be any bytes}

local DELIVERIES_ALONE = 2
local BOOSTED = 0
local BOOST_PRIORITY = 100
local ARGUMENTS = 'arguments-'
local POPS = {list = 'LPOP', set = 'SPOP', zset = 'ZPOPMAX'}

-- The arguments' worker may hold them as long as the run lasts: its death says nothing of them.
local function is_arguments(id)
    return id:sub(1, #ARGUMENTS) == ARGUMENTS
end

redis.call('ZREM', queue_key, '')  -- see finish.lua
for _, id in ipairs(given.renew) do
    redis.call('ZADD', leases_key, 'XX', 'GT', now + given.lease, id)
end
redis.call('ZADD', workers_key, now + given.lease, given.worker)
redis.call('ZREMRANGEBYSCORE', workers_key, '-inf', now)
move_site_back(budget_key, circuit_key)
local site = ask_site(budget_key, circuit_key)

-- Seeds leave the list of whoever pushed them only while the site may be asked.
local start_urls_key = KEYS[14]
local kind = redis.call('TYPE', start_urls_key).ok
local pop = POPS[kind]
if pop and given.want > 0 and site.blocked == 0 then
    local most = site.half_open and 1 or given.want
    local popped = redis.call(pop, start_urls_key, most)
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

-- Leases that have ended.
local new_dead_letters = {}
for _, id in ipairs(redis.call('ZRANGEBYSCORE', leases_key, '-inf', now, 'LIMIT', 0, 500)) do
    local value = redis.call('HGET', requests_key, id)
    if not value then
        redis.call('ZREM', leases_key, id)
    else
        local _, deliveries = parse(value)
        if deliveries < given.deliveries or is_arguments(id) then
            put_back(id, value)
        else
            local reason = 'handed out ' .. deliveries
                .. ' times, each time to a worker that died before it was done'
            make_dead_letter(id, value, reason)
            new_dead_letters[#new_dead_letters + 1] = id
        end
    end
end

-- Requests that the queue or the leases have lost. Each step searches a part, as the whole could
-- take seconds.
local placed = redis.call('ZCARD', queue_key) + redis.call('ZCARD', leases_key)
if placed < redis.call('HLEN', requests_key) then
    local cursor = redis.call('HGET', state_key, 'cursor') or 0
    local slice = redis.call('HSCAN', requests_key, cursor, 'COUNT', 1000)
    redis.call('HSET', state_key, 'cursor', slice[1])
    for position = 1, #slice[2], 2 do
        local id = slice[2][position]
        local is_queued = redis.call('ZSCORE', queue_key, id)
        if not is_queued and not redis.call('ZSCORE', leases_key, id) then
            put_back(id, slice[2][position + 1])
        end
    end
end

-- Leave some of the last requests to the other workers.
local want = given.want
local sharing = redis.call('ZCARD', workers_key)
if site.half_open then
    want = math.min(want, 1)
elseif sharing > 1 then
    want = math.min(want, math.ceil(redis.call('ZCARD', queue_key) / 2 / sharing))
end

local handed_out = {}
local bodies = {}
while #handed_out < want do
    local first = redis.call('ZRANGE', queue_key, 0, 0, 'WITHSCORES')
    local id = first[1]
    local is_off_site = id and tonumber(first[2]) < 0
    if not id or (site.blocked > 0 and not is_off_site) then
        break
    end
    local value = redis.call('HGET', requests_key, id)
    if value then
        local level, deliveries, is_title, body = parse(value)
        if deliveries >= DELIVERIES_ALONE and not is_arguments(id) then
            -- It may have killed two workers, so that a worker takes it alone.
            if not given.is_idle or #handed_out > 0 then
                break
            end
            want = 1
        end
        local flag = is_title and 't' or '-'
        local leased = level .. ' ' .. deliveries + 1 .. ' ' .. flag .. '\n' .. body
        redis.call('ZADD', leases_key, now + given.lease, id)
        redis.call('HSET', requests_key, id, leased)
        handed_out[#handed_out + 1] = {id = id, number = deliveries + 1}
        bodies[#bodies + 1] = body
    end
    redis.call('ZREM', queue_key, id)  -- also when `requests` has lost it
end

local reply = {
    site = site,
    account = read_account(end_step()),
    waiting = redis.call('ZCARD', queue_key),
    -- An empty list would become an object.
    deliveries = #handed_out > 0 and handed_out or nil,
    new_dead_letters = #new_dead_letters > 0 and new_dead_letters or nil,
    wrong_type = not pop and kind ~= 'none' and kind or '',
    was_lost = redis.call('HDEL', state_key, 'was_lost') == 1,
}
return {cjson.encode(reply), bodies}
