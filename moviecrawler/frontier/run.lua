-- What the steps of a run share.

-- The distance between the scores of two levels: above all microseconds until 2065.
local LEVEL = 3e15
local OFF_SITE = -1
local TITLES = 2
local TITLE_OUTCOMES = {
    stored = true, absent = true, failed = true, disallowed = true, fresh = true
}
local OUTCOMES = {'stored', 'absent', 'failed', 'disallowed', 'fresh', 'dead', 'read', 'unread'}

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
    redis.call('HSET', keys.requests, id, level .. ' ' .. deliveries .. ' ' .. flag .. '\n' .. body)
    redis.call('ZADD', keys.queue, level * LEVEL + order, id)
end

-- Put a request back at the front of its level, or where `order` says.
local function put_back(id, value, deliveries, order)
    local level, before, is_title, body = parse(value)
    redis.call('ZREM', keys.leases, id)
    put(id, level, order or 0, deliveries or before, is_title, body)
end

local function add(name, number)
    redis.call('HINCRBY', keys.state, name, number)
end

local function make_dead_letter(id, value, reason)
    redis.call('ZREM', keys.queue, id)
    redis.call('ZREM', keys.leases, id)
    redis.call('HDEL', keys.requests, id)
    local head = cjson.encode({reason = reason, at = now})
    redis.call('HSET', keys.dead, id, head .. '\n' .. value)
    redis.call('PEXPIRE', keys.dead, DEAD_MS)
    add('dead', 1)
end

-- Return when a request died (ms); nil when its letter is damaged.
local function died_at(letter)
    return tonumber(letter:match('"at":([%d.e+]+)'))
end

-- Return whether the account of this pass counts a dead letter: one of an earlier pass is not,
-- unless the state was lost since.
local function is_counted(letter)
    local counted_from = tonumber(redis.call('HGET', keys.state, 'counted_from')) or 0
    return (died_at(letter) or 0) >= counted_from
end

-- Queue the request of a dead letter, with no deliveries, unless it is open again. One that this
-- pass counts as dead is counted so no more; one of an earlier pass is a request more.
local function queue_letter(id, letter, number)
    local level, _, is_title, body = parse(letter:match('\n(.*)') or letter)
    if redis.call('HEXISTS', keys.requests, id) == 1 then
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
    redis.call('UNLINK', keys.seen, keys.titles)
    redis.call('HSET', keys.state, 'arguments', arguments, 'started_at', now)
end

-- Move the letters that were requeued into the queue.
local function queue_requeued()
    local letters = redis.call('HGETALL', keys.requeued)
    for position = 1, #letters, 2 do
        queue_letter(letters[position], letters[position + 1], position)
    end
    redis.call('DEL', keys.requeued)
end

-- Begin anew a run whose state was lost. Its dead letters count, so that no failure is hidden.
local function recover(arguments)
    put_arguments(arguments)
    local dead = redis.call('HLEN', keys.dead) + redis.call('HLEN', keys.requeued)
    redis.call('HSET', keys.state, 'requested', redis.call('HLEN', keys.requests) + dead)
    redis.call('HSET', keys.state, 'dead', dead, 'counted_from', 0, 'was_lost', 1)
    queue_requeued()
end

local function count_open(of_run)
    -- A lease whose request was lost counts as open: its worker is still at it.
    return math.max(redis.call('HLEN', of_run.requests), redis.call('ZCARD', of_run.leases))
end

-- Note when the run was over and that it is in use. Every step of a worker ends with this.
local function end_step()
    local open = count_open(keys)
    if open > 0 then
        redis.call('HDEL', keys.state, 'over_at')
    else
        redis.call('HSETNX', keys.state, 'over_at', now)
    end
    redis.call('ZADD', keys.runs, now, given.run)
    redis.call('HSET', keys.left, given.run, open)
    -- A run that waits for a site that is blocking us lives until a week after the pause.
    local closed_until = tonumber(redis.call('HGET', keys.circuit, 'until')) or 0
    local lifetime = UNUSED_MS + math.max(0, closed_until - now)
    for _, name in ipairs(OF_PASS) do
        redis.call('PEXPIRE', keys[name], lifetime)
    end
    return open
end

-- Return the account in the state of a run; open is how many of its requests are.
local function read_account(state_key, open)
    local account = {open = open, requested = 0}
    local fields = redis.call('HGETALL', state_key)
    for position = 1, #fields, 2 do
        local number = tonumber(fields[position + 1])
        if number and fields[position] ~= 'arguments' then
            account[fields[position]] = number
        end
    end
    return account
end

local function recover_if_lost()
    if redis.call('HEXISTS', keys.state, 'requested') == 0 then
        recover(given.worker.arguments)
    end
end
