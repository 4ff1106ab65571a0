-- What all scripts of a run share.
--
-- KEYS  1 state  2 queue  3 leases  4 requests  5 seen  6 titles  7 workers  8 dead  9 requeued
--       10 runs  11 left  12 budget  13 circuit; `keys.py` says what each holds

local state_key = KEYS[1]
local queue_key = KEYS[2]
local leases_key = KEYS[3]
local requests_key = KEYS[4]
local seen_key = KEYS[5]
local titles_key = KEYS[6]
local workers_key = KEYS[7]
local dead_key = KEYS[8]
local requeued_key = KEYS[9]
local runs_key = KEYS[10]
local left_key = KEYS[11]
local budget_key = KEYS[12]
local circuit_key = KEYS[13]

-- The distance between the scores of two levels: above all microseconds until 2065.
local LEVEL = 3e15
local OFF_SITE = -1
local TITLES = 2
local UNUSED_MS = 7 * DAY_MS
local DEAD_MS = 30 * DAY_MS
local TITLE_OUTCOMES = {
    stored = true, absent = true, failed = true, disallowed = true, fresh = true
}

-- Return a request's level, deliveries, whether it is a title's, and its body. A damaged value is
-- leased as it is: its worker makes it a dead letter, with the reason.
local function parse(value)
    local level, deliveries, flag, body = value:match('^(%-?%d) (%d+) ?(%S*)\n(.*)$')
    if not level then
        return TITLES, 0, false, value
    end
    local is_title = flag == 't' or body:sub(1, 14) == '["parse_title"'
    return tonumber(level), tonumber(deliveries), is_title, body
end

local function put(id, level, order, deliveries, is_title, body)
    local flag = is_title and 't' or '-'
    redis.call('HSET', requests_key, id, level .. ' ' .. deliveries .. ' ' .. flag .. '\n' .. body)
    redis.call('ZADD', queue_key, level * LEVEL + order, id)
end

-- Put a request back at the front of its level, or where `order` says.
local function put_back(id, value, deliveries, order)
    local level, before, is_title, body = parse(value)
    redis.call('ZREM', leases_key, id)
    put(id, level, order or 0, deliveries or before, is_title, body)
end

local function add(name, number)
    redis.call('HINCRBY', state_key, name, number)
end

local function make_dead_letter(id, value, reason)
    redis.call('ZREM', queue_key, id)
    redis.call('ZREM', leases_key, id)
    redis.call('HDEL', requests_key, id)
    local head = cjson.encode({reason = reason, at = now})
    redis.call('HSET', dead_key, id, head .. '\n' .. value)
    redis.call('PEXPIRE', dead_key, DEAD_MS)
    add('dead', 1)
end

-- Return whether the account of this pass counts a dead letter: one of an earlier pass is not,
-- unless the state was lost since.
local function is_counted(letter)
    local died_at = tonumber(letter:match('"at":([%d.e+]+)')) or 0
    local counted_from = tonumber(redis.call('HGET', state_key, 'counted_from')) or 0
    return died_at >= counted_from
end

-- Queue the request of a dead letter, with no deliveries, unless it is open again. One that this
-- pass counts as dead is counted so no more; one of an earlier pass is a request more.
local function queue_letter(id, letter, number)
    local level, _, is_title, body = parse(letter:match('\n(.*)') or letter)
    if redis.call('HEXISTS', requests_key, id) == 1 then
        return
    end
    put(id, level, microseconds + number, 0, is_title, body)
    if is_counted(letter) then
        add('dead', -1)
        return
    end
    add('requested', 1)
    if is_title or id:sub(1, 5) == 'seed-' then
        add('titles', 1)
    end
end

-- Put the request that represents the arguments at the front: who leases that queues what they
-- name. Its id is one that no earlier one had. Nothing may count as seen, so that all is queued.
local function put_arguments(arguments)
    put('arguments-' .. time[1] .. time[2], OFF_SITE, 0, 0, false, '')
    redis.call('UNLINK', seen_key, titles_key)
    redis.call('HSET', state_key, 'arguments', arguments, 'started_at', now)
end

-- Move the letters that were requeued into the queue; return how many.
local function queue_requeued()
    local letters = redis.call('HGETALL', requeued_key)
    for position = 1, #letters, 2 do
        queue_letter(letters[position], letters[position + 1], position)
    end
    redis.call('DEL', requeued_key)
    return #letters / 2
end

-- Begin anew a run whose state was lost. Its dead letters count, so that no failure is hidden.
local function recover(arguments)
    put_arguments(arguments)
    local dead = redis.call('HLEN', dead_key) + redis.call('HLEN', requeued_key)
    redis.call('HSET', state_key, 'requested', redis.call('HLEN', requests_key) + dead)
    redis.call('HSET', state_key, 'dead', dead, 'counted_from', 0, 'was_lost', 1)
    queue_requeued()
end

local function count_open()
    -- A lease whose request was lost counts as open: its worker is still at it.
    return math.max(redis.call('HLEN', requests_key), redis.call('ZCARD', leases_key))
end

-- Note when the run was over and that it is in use. Every script of a run ends with this.
local function end_step()
    local open = count_open()
    if open > 0 then
        redis.call('HDEL', state_key, 'over_at')
    else
        redis.call('HSETNX', state_key, 'over_at', now)
    end
    redis.call('ZADD', runs_key, now, given.run)
    redis.call('HSET', left_key, given.run, open)
    -- A run that waits for a site that is blocking us lives until a week after the pause.
    local closed_until = tonumber(redis.call('HGET', circuit_key, 'until')) or 0
    local lifetime = UNUSED_MS + math.max(0, closed_until - now)
    for number = 1, 7 do  -- the keys of the pass
        redis.call('PEXPIRE', KEYS[number], lifetime)
    end
    return open
end

local function read_account(open)
    local account = {open = open}
    local fields = redis.call('HGETALL', state_key)
    for position = 1, #fields, 2 do
        local number = tonumber(fields[position + 1])
        if number and fields[position] ~= 'arguments' then
            account[fields[position]] = number
        end
    end
    return account
end

if given.can_be_lost and redis.call('HEXISTS', state_key, 'requested') == 0 then
    recover(given.arguments)
end
