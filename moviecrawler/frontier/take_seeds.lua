-- Take seeds that others have pushed. They stay among the taken ones until the worker acknowledges them.
--
-- KEYS  1 seeds: a LIST, a SET or a ZSET, as scrapy-redis has them  2 taken seeds
-- ARGV  1 how many at most  2 how long they are this worker's (ms)
-- Returns {type of the key, how many others are taken, seed, …}; each seed has a name of its own before it, and a line feed.

local kind = redis.call('TYPE', KEYS[1]).ok
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local most = tonumber(ARGV[1])

-- Those that a worker has not acknowledged within its time are taken over.
local seeds = redis.call('ZRANGEBYSCORE', KEYS[2], '-inf', now, 'LIMIT', 0, most)
local left = most - #seeds
if left > 0 then
    local popped, step = {}, 1
    if kind == 'list' then
        popped = redis.call('LPOP', KEYS[1], left)
    elseif kind == 'set' then
        popped = redis.call('SPOP', KEYS[1], left)
    elseif kind == 'zset' then
        popped, step = redis.call('ZPOPMAX', KEYS[1], left), 2  -- each with its score
    end
    for number = 1, #popped, step do
        seeds[#seeds + 1] = string.format('%s.%06d-%d\n', time[1], time[2], number) .. popped[number]
    end
end
for _, seed in ipairs(seeds) do
    redis.call('ZADD', KEYS[2], now + ARGV[2], seed)
end
return {kind, redis.call('ZCARD', KEYS[2]) - #seeds, unpack(seeds)}
