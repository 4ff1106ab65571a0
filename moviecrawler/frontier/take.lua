-- Lease requests to a worker, and return the state of the run. This is the worker's heartbeat, too.
--
-- KEYS  as in run.lua, then 9 budget  10 circuit  11 start_urls
-- given.worker, given.lease (ms), given.deliveries (after which a request is a dead letter)
-- given.renew  ids of the requests whose leases the worker renews
-- given.want   how many more it asks for; as many seeds are moved to the queue
-- Returns {JSON of a `SiteReply`, {total, done, failed}, open, waiting, {{id, number of this delivery, body}, …}, new dead letters}

for _, id in ipairs(given.renew) do
    redis.call('ZADD', leases, 'XX', 'GT', now + given.lease, id)
end
redis.call('ZADD', workers, now + given.lease, given.worker)
redis.call('ZREMRANGEBYSCORE', workers, '-inf', now)

-- Seeds ----------------------------------------------------------------------------------------------------------------
local start_urls = KEYS[11]
local pop = ({list = 'LPOP', set = 'SPOP', zset = 'ZPOPMAX'})[redis.call('TYPE', start_urls).ok]
local popped = pop and given.want > 0 and redis.call(pop, start_urls, given.want) or {}
for number = 1, #popped, pop == 'ZPOPMAX' and 2 or 1 do  -- in a sorted set, each is followed by its score
    local priority = tonumber(popped[number]:match('"priority"%s*:%s*(%d+)') or 0)
    local id = string.format('seed-%s%06d-%d', time[1], time[2], number)  -- new even when the state was lost
    put(id, priority >= 100 and 0 or 2, microseconds + number, 0, popped[number])
    redis.call('HINCRBY', state, 'total', 1)
end

-- Leases that have ended -------------------------------------------------------------------------------------------------
local new_dead_letters = {}
for _, id in ipairs(redis.call('ZRANGEBYSCORE', leases, '-inf', now, 'LIMIT', 0, 500)) do
    local value = redis.call('HGET', requests, id)
    local deliveries = value and select(2, parse(value))
    if not value then
        redis.call('ZREM', leases, id)
    elseif deliveries < given.deliveries then
        put_back(id, value)
    else
        make_dead_letter(id, value, 'handed out ' .. deliveries .. ' times, each time to a worker that died before it was done')
        new_dead_letters[#new_dead_letters + 1] = id
    end
end
if redis.call('ZCARD', queue) + redis.call('ZCARD', leases) < redis.call('HLEN', requests) then
    -- The queue or the leases were lost. Each step searches a part of `requests`, as the whole could take seconds.
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
local site = ask_site(KEYS[9], KEYS[10])
local sharing, want = redis.call('ZCARD', workers), given.want
if site.half_open then
    want = math.min(want, 1)
elseif sharing > 1 then
    -- Leave some of the last requests to the other workers.
    want = math.min(want, math.ceil(redis.call('ZCARD', queue) / 2 / sharing))
end
local handed_out = {}
while #handed_out < want do
    local id, score = unpack(redis.call('ZRANGE', queue, 0, 0, 'WITHSCORES'))
    if not id or site.blocked > 0 and tonumber(score) >= 0 then
        break  -- what stands for the arguments is below 0: the site is not asked for that
    end
    local value = redis.call('HGET', requests, id)
    if value then
        local level, deliveries, body = parse(value)
        if deliveries >= 2 and #given.renew + #handed_out > 0 then
            break  -- it may have killed two workers, so a worker takes it alone
        end
        want = deliveries >= 2 and 1 or want
        redis.call('ZADD', leases, now + given.lease, id)
        redis.call('HSET', requests, id, level .. ' ' .. deliveries + 1 .. ' ' .. given.worker .. '\n' .. body)
        handed_out[#handed_out + 1] = {id, deliveries + 1, body}
    end
    redis.call('ZREM', queue, id)  -- also when `requests` has lost it
end

local counts, open = redis.call('HMGET', state, 'total', 'done', 'failed'), end_step()
return {cjson.encode(site), counts, open, redis.call('ZCARD', queue), handed_out, new_dead_letters}
