-- Open a run, or join it; with a digest, also ask to seed it.
--
-- A round is one reading of what some arguments name. Whoever was asked to crawl before a round was over takes part in it;
-- whoever was asked after that begins the next one.
--
-- KEYS  1 state  2 workers  3 runs  4 current runs  5 what the rounds have queued
-- ARGV  1 nonce to give a new run  2 run  3 worker  4 digest of the arguments, or ''
--       5 'ask' to seed, 'done' once it is all queued, 'again' to begin a round whatever was done before
--       6 window (ms)  7 when the crawl was asked for (ms since 1970), or how long ago (ms, below 0)
-- Returns {nonce of the run, 'seed' | 'wait' | 'done'}: to seed now, to ask again later as a worker does it, or that it was
-- done.

local state = KEYS[1]
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
if redis.call('HSETNX', state, 'born', ARGV[1]) == 1 then
    redis.call('HSET', state, 'started_at', now)
    redis.call('PEXPIRE', state, math.max(2 * ARGV[6], 86400000))  -- as each exchange does, of which there may be none
    redis.call('ZADD', KEYS[3], now, ARGV[2])
end
redis.call('ZADD', KEYS[4], now, ARGV[2])
local run_id = redis.call('HGET', state, 'born')
local digest, step = ARGV[4], ARGV[5]
if digest == '' then
    return {run_id, 'wait'}
end
local field = 'seeded:' .. digest
if step == 'done' then
    redis.call('HSET', state, field, 'done ' .. string.format('%.0f', now))
    return {run_id, 'done'}
end

local counted = redis.call('HMGET', state, 'total', 'done', 'failed')
local open = (tonumber(counted[1]) or 0) - (tonumber(counted[2]) or 0) - (tonumber(counted[3]) or 0)

local function begin_round()
    if open <= 0 then
        redis.call('UNLINK', KEYS[5])  -- no round is under way
    end
    redis.call('HDEL', state, 'titles:' .. digest)  -- its limit counts anew
    redis.call('HSET', state, 'round:' .. digest, redis.call('HINCRBY', state, 'rounds', 1))
end

if step == 'again' then
    begin_round()
    return {run_id, 'seed'}
end
local seeder = redis.call('HGET', state, field)
local done_at = seeder and tonumber(seeder:match('^done (%d+)$'))
if done_at then
    local turned = redis.call('HMGET', state, 'busy_at', 'idle_at')
    local busy_at, idle_at = tonumber(turned[1]) or 0, tonumber(turned[2]) or 0
    -- When all of the round was done: it was at a moment when the run had nothing to do.
    local over_at
    if busy_at > done_at then
        over_at = busy_at
    elseif idle_at >= done_at then
        over_at = idle_at
    elseif open <= 0 then
        over_at = done_at
    end
    local asked_at = tonumber(ARGV[7])
    if asked_at < 0 then
        asked_at = now + asked_at
    end
    if over_at and asked_at > over_at then
        begin_round()
    elseif over_at or now - done_at < tonumber(ARGV[6]) then
        return {run_id, 'done'}
    end
    -- Else it was begun long ago and never came to its end: what is left of it is known.
elseif seeder then
    -- A worker that died while it seeded is replaced; what it queued is known.
    if seeder ~= ARGV[3] and redis.call('ZSCORE', KEYS[2], seeder) then
        return {run_id, 'wait'}
    end
else
    begin_round()
end
redis.call('HSET', state, field, ARGV[3])
return {run_id, 'seed'}
