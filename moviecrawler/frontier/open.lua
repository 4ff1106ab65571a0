-- Open a run, or join it; with a digest, also ask to seed it.
--
-- KEYS  1 state  2 workers  3 runs  4 current runs
-- ARGV  1 nonce to give a new run  2 run  3 worker  4 digest of the arguments, or ''  5 whether its seeds are queued (0 or 1)
--       6 window (ms)
-- Returns {nonce of the run, 'seed' | 'wait' | 'done'}: to seed now, to ask again later as a worker does it, or that it was
-- done within the window.

local state = KEYS[1]
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
if redis.call('HSETNX', state, 'born', ARGV[1]) == 1 then
    redis.call('HSET', state, 'started_at', now)
    redis.call('PEXPIRE', state, math.max(2 * ARGV[6], 86400000))  -- as each exchange does, of which there may be none
    redis.call('ZADD', KEYS[3], now, ARGV[2])
end
redis.call('ZADD', KEYS[4], now, ARGV[2])
local born = redis.call('HGET', state, 'born')
if ARGV[4] == '' then
    return {born, 'wait'}
end
local field = 'seeded:' .. ARGV[4]
if ARGV[5] == '1' then
    redis.call('HSET', state, field, 'done ' .. string.format('%.0f', now))
    return {born, 'done'}
end
local seeder = redis.call('HGET', state, field)
local done_at = seeder and tonumber(seeder:match('^done (%d+)$'))
if done_at and now - done_at < tonumber(ARGV[6]) then
    return {born, 'done'}
end
-- A worker that died while it seeded is replaced; what it queued is known to the dupefilter.
if seeder and not done_at and seeder ~= ARGV[3] and redis.call('ZSCORE', KEYS[2], seeder) then
    return {born, 'wait'}
end
if done_at then
    redis.call('HDEL', state, 'titles:' .. ARGV[4])  -- its limit counts anew
end
redis.call('HSET', state, field, ARGV[3])
return {born, 'seed'}
