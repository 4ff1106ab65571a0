-- Joining the run of a name, or beginning the next pass.

local FORGOTTEN_MS = 60 * DAY_MS

local function drop_old_letters(key)
    local letters = redis.call('HGETALL', key)
    for position = 1, #letters, 2 do
        if (died_at(letters[position + 1]) or now) < now - DEAD_MS then
            redis.call('HDEL', key, letters[position])
        end
    end
end

local function begin_pass()
    redis.call('DEL', keys.state, keys.queue, keys.leases, keys.requests)
    redis.call('HSET', keys.state, 'requested', 1, 'titles', 0, 'counted_from', now)
    put_arguments(given.worker.arguments)
    queue_requeued()
end

local function forget_old()
    drop_old_letters(keys.dead)
    drop_old_letters(keys.requeued)
    local last = now - FORGOTTEN_MS
    for _, name in ipairs(redis.call('ZRANGEBYSCORE', keys.runs, '-inf', last, 'LIMIT', 0, 100)) do
        redis.call('ZREM', keys.runs, name)
        redis.call('HDEL', keys.left, name)
    end
end

-- Return whether the pass that is over has lost requests.
local function has_lost()
    local account = read_account(keys.state, 0)
    local ended = 0
    for _, outcome in ipairs(OUTCOMES) do
        ended = ended + (account[outcome] or 0)
    end
    return account.requested > ended
end

-- given.requested_at  when the worker was requested (s), unless given.age, the seconds since, says
--   it
-- Return an `Opened`.
function steps.open()
    redis.call('SADD', SITES, given.site)
    local remarks = {}
    if redis.call('EXISTS', EARLIER_RUNS) == 1 then
        remarks = take_over()
    end
    forget_old()
    local opened = {remarks = list(remarks)}
    local state = redis.call('HMGET', keys.state, 'requested', 'arguments', 'over_at')
    local arguments = state[2]
    local over_at = tonumber(state[3])
    local requested_at = now - given.age * 1000
    if given.requested_at then
        requested_at = given.requested_at * 1000
    end
    local is_once = given.worker.is_once
    if not state[1] then
        if redis.call('EXISTS', keys.requests) == 1 then
            recover(given.worker.arguments)
        else
            opened.gone = tonumber(redis.call('HGET', keys.left, given.run)) or 0
            begin_pass()
        end
    elseif arguments and arguments ~= given.worker.arguments then
        opened.other_arguments = arguments
        return opened
    elseif over_at then
        if is_once and redis.call('EXISTS', keys.requeued) == 1 then
            queue_requeued()
        elseif has_lost() or (not is_once and over_at < requested_at) then
            begin_pass()
        else
            opened.over_at = over_at / 1000
        end
    end
    redis.call('HSET', keys.state, 'arguments', given.worker.arguments)
    if opened.over_at then
        redis.call('ZADD', keys.runs, now, given.run)
    else
        end_step()
    end
    return opened
end
