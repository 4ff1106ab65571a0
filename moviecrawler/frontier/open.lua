-- Join the run of a name, or begin the next pass.
--
-- KEYS  as in run.lua
-- given.run, given.arguments; given.is_once: whether the name was chosen, and is passed over once
-- given.requested_at  when the worker was requested, in ms; 0 when given.age, the ms since, says it
-- Returns JSON: error (the arguments of the run, when they are others), over_at (ms) and
--   gone (how many open requests the name had when its keys expired)

local FORGOTTEN_MS = 60 * DAY_MS

local function drop_old_letters(key)
    local letters = redis.call('HGETALL', key)
    for position = 1, #letters, 2 do
        local at = tonumber(letters[position + 1]:match('"at":([%d.e+]+)')) or now
        if at < now - DEAD_MS then
            redis.call('HDEL', key, letters[position])
        end
    end
end

local function begin_pass()
    redis.call('DEL', state_key, queue_key, leases_key, requests_key)
    redis.call('HSET', state_key, 'requested', 1, 'titles', 0, 'counted_from', now)
    put_arguments(given.arguments)
    queue_requeued()
end

drop_old_letters(dead_key)
drop_old_letters(requeued_key)
local forgotten = redis.call('ZRANGEBYSCORE', runs_key, '-inf', now - FORGOTTEN_MS, 'LIMIT', 0, 100)
for _, name in ipairs(forgotten) do
    redis.call('ZREM', runs_key, name)
    redis.call('HDEL', left_key, name)
end

local answer = {gone = 0}
local state = redis.call('HMGET', state_key, 'requested', 'arguments', 'over_at')
local arguments = state[2]
local over_at = tonumber(state[3])
local requested_at = given.requested_at
if requested_at == 0 then
    requested_at = now - given.age
end
if not state[1] then
    if redis.call('EXISTS', requests_key) == 1 then
        recover(given.arguments)
    else
        answer.gone = tonumber(redis.call('HGET', left_key, given.run)) or 0
        begin_pass()
    end
elseif arguments and arguments ~= given.arguments then
    return cjson.encode({error = arguments})
elseif over_at then
    local account = read_account(0)
    local ended = 0
    for _, outcome in ipairs(given.outcomes) do
        ended = ended + (account[outcome] or 0)
    end
    local has_lost = account.requested > ended
    if given.is_once and redis.call('EXISTS', requeued_key) == 1 then
        queue_requeued()
    elseif has_lost or (not given.is_once and over_at < requested_at) then
        begin_pass()
    else
        answer.over_at = over_at
    end
end
redis.call('HSET', state_key, 'arguments', given.arguments)
if answer.over_at then
    redis.call('ZADD', runs_key, now, given.run)
else
    end_step()
end
return cjson.encode(answer)
