-- One exchange between a worker and the frontier: queue its new requests, end its leases, hand out more.
--
-- In that order: when Redis is out of memory, the first write fails and nothing is acknowledged whose follow-ups are
-- not queued.
--
-- An entry is: level (1 digit), deliveries so far (2 digits), id (32 hex digits: the fingerprint), the request.
--
-- KEYS  1 state  2 workers  3 leases of this worker  4-6 requests by level  7-8 dupefilter by parity of the generation
--       9 dead letters  10 failed  11 nodes  12 what the rounds have queued  13 budget  14 circuit  15 hangs
-- ARGV  1 MessagePack map:
--   run_id      nonce of the run, as opened (the state calls it `born`)
--   worker, node
--   join        whether the worker begins here, with no leases
--   leave       whether it ends here
--   lease, window           ms
--   pushes      {{level, id, request, whether it must pass the dupefilter, whether it is a title, whether it is dropped only if this
--               round has queued it, as what the arguments name is asked for in each round}, …}
--   first       how many pushes of this worker were queued before these, as far as it knows: when an answer was lost, it tells some
--               twice; false to queue all
--   digest, limit           of the arguments: at most so many titles are queued under that digest; 0 for any number
--   bloom, capacity, error  whether pages are remembered in a Bloom filter, and its size; else in an exact set
--   ends        {{id, how: "done" | "failed" | "back" | "dead", reason}, …}
--   spent       requests that the worker sent besides those handed out, such as retries
--   unsent      requests that were handed out and that it gives back without having sent them
--   refusal     {reason, ms} when the site has refused the worker, else false
--   answered    whether the site has answered the probe
--   deliveries  after which a request that was not ended is set aside
--   hangs       times that its page made a worker hang, after which a request is set aside
--   want        how many requests to hand out
--   regardless  whether to hand them out even while the site refuses us, as they will not be sent to it
--   wakeup      channel that wakes workers without work when there is some, or nothing is left
--   gap (ms, 0 for none), burst, per_day (0 for no limit)
-- Returns {JSON of what `Reply` holds, entry, ms until it may be sent, entry, ms, …}

local state, workers, leases, dead_letters = KEYS[1], KEYS[2], KEYS[3], KEYS[9]
local given = cmsgpack.unpack(ARGV[1])
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)

if redis.call('HGET', state, 'born') ~= given.run_id then
    return redis.error_reply('GONE the run is not the one that was opened')
end

if #given.pushes == 0 and given.want == 0 then
    -- Redis refuses a script for want of memory at its first write, unless that write could only free some. Ends do free
    -- some, and a heartbeat keeps what is in flight from being done twice.
    redis.call('HDEL', leases, '')
end

local circuit, budget, hangs_by_id = KEYS[14], KEYS[13], KEYS[15]

-- Damage --------------------------------------------------------------------------------------------------------------
local LONGEST_PAUSE = 8 * 24 * 3600 * 1000  -- ms; a circuit is open for a week at most
local damaged = {}  -- what could not be read and was dropped, in words: one damaged field must not stop all crawls of a site
for _, key in ipairs({budget, circuit, hangs_by_id}) do
    local kind = redis.call('TYPE', key).ok
    if kind ~= 'hash' and kind ~= 'none' then
        redis.call('UNLINK', key)
        damaged[#damaged + 1] = key
    end
end

-- Return a number from 0 to `most` in a hash, and `default` when there is none; what is no such number is dropped.
local function number(key, field, default, most, whole)
    local text = redis.call('HGET', key, field)
    if not text then
        return default
    end
    local value = tonumber(text)
    if value and value >= 0 and value <= most and (text:match('^%d+$') or not whole) then
        return value
    end
    redis.call('HDEL', key, field)
    damaged[#damaged + 1] = field .. ' in ' .. key
    return default
end

for _, field in ipairs({'total', 'done', 'failed', 'dropped', 'pops', 'generation', 'titles:' .. given.digest}) do
    number(state, field, 0, 1e15, true)
end
for _, field in ipairs({' done', ' failed'}) do
    number(KEYS[11], given.node .. field, 0, 1e15, true)
end

-- Heartbeat ------------------------------------------------------------------------------------------------------------
local lost = not given.join and not redis.call('ZSCORE', workers, given.worker)
if not lost then
    redis.call('ZADD', workers, now + given.lease, given.worker)
end

-- Queue ----------------------------------------------------------------------------------------------------------------
local generation = math.floor(now / given.window)
local before = tonumber(redis.call('HGET', state, 'generation') or generation)
if before < generation then
    redis.call('UNLINK', KEYS[7 + generation % 2])
    if before < generation - 1 then
        redis.call('UNLINK', KEYS[7 + (generation + 1) % 2])
    end
end
if before ~= generation or #given.pushes > 0 then
    redis.call('HSET', state, 'generation', generation)
end
local current, previous = KEYS[7 + generation % 2], KEYS[7 + (generation + 1) % 2]

-- A generation stays what it began as, a SET or the STRING of a Bloom filter, when FRONTIER_DUPEFILTER is another one since.
local kind_of_current, kind_of_previous = redis.call('TYPE', current).ok, redis.call('TYPE', previous).ok
if kind_of_current == 'none' then
    kind_of_current = given.bloom and 'string' or 'set'
end
local error = given.error * 0.8  -- as hashes made of two are a little worse than independent ones
local bits = math.ceil(-given.capacity * math.log(error) / math.log(2) ^ 2)
local hashes = math.ceil(-math.log(error) / math.log(2))

-- Run BITFIELD on all of a page's bits; return whether all were set. Two parts of the fingerprint make all hashes (Kirsch and
-- Mitzenmacher), and both stay exact in a double.
local function all_were_set(key, id, operation, value)
    local first, second = tonumber(id:sub(1, 12), 16), tonumber(id:sub(13, 24), 16)
    local arguments = {}
    for i = 0, hashes - 1 do
        local at = #arguments
        arguments[at + 1], arguments[at + 2] = operation, 'u1'
        arguments[at + 3], arguments[at + 4] = (first + i * second) % bits, value
    end
    for _, bit in ipairs(redis.call('BITFIELD', key, unpack(arguments))) do
        if bit == 0 then
            return false
        end
    end
    return true
end

local function bytes_of(hex)
    return (hex:sub(1, 32):gsub('..', function(byte) return string.char(tonumber(byte, 16)) end))
end

-- Remember a page; return whether it was known.
local function known(id)
    local digest = bytes_of(id)
    if kind_of_previous == 'string' and all_were_set(previous, id, 'GET')
        or kind_of_previous == 'set' and redis.call('SISMEMBER', previous, digest) == 1 then
        return true
    end
    if kind_of_current == 'string' then
        return all_were_set(current, id, 'SET', 1)
    end
    return redis.call('SADD', current, digest) == 0
end

-- Remember that a round has queued a page; return whether it had before.
local round = redis.call('HGET', state, 'round:' .. given.digest)
local function known_in_round(id)
    return redis.call('SADD', KEYS[12], bytes_of(redis.sha1hex(id .. ' ' .. round))) == 0  -- revive.lua adds to it, too
end

local function still_open()
    local counted = redis.call('HMGET', state, 'total', 'done', 'failed')
    return (counted[1] or 0) - (counted[2] or 0) - (counted[3] or 0)
end
local open_before = still_open()

local titles = 'titles:' .. given.digest
local titles_so_far = given.limit > 0 and tonumber(redis.call('HGET', state, titles) or 0)
local queued, titles_queued, dropped = 0, 0, 0
local pushed, sent_before = 'pushed:' .. given.worker, 0
if given.first and #given.pushes > 0 then
    sent_before = math.max(0, (redis.call('HGET', state, pushed) or 0) - given.first)
end
for number = sent_before + 1, #given.pushes do
    local level, id, request, filtered, is_title, by_round = unpack(given.pushes[number])
    local above = titles_so_far and is_title and titles_so_far + titles_queued >= given.limit
    local is_known
    if not above then
        is_known = known(id)
        if by_round and round then
            is_known = known_in_round(id)
        end
    end
    if above or (is_known and filtered) then
        dropped = dropped + 1
    else
        redis.call('RPUSH', KEYS[4 + level], level .. '00' .. id .. request)
        queued = queued + 1
        titles_queued = titles_queued + (is_title and 1 or 0)
    end
end
if given.first and #given.pushes > 0 and not lost then
    redis.call('HSET', state, pushed, given.first + #given.pushes)
end
if queued > 0 then
    redis.call('HINCRBY', state, 'total', queued)
    redis.call('HINCRBY', state, titles, titles_queued)
end
if dropped > 0 then
    redis.call('HINCRBY', state, 'dropped', dropped)
end

-- End leases -----------------------------------------------------------------------------------------------------------
local ended = {done = 0, failed = 0, back = 0, dead = 0}
local failed_ones = KEYS[10]
local trial = redis.call('HGET', circuit, 'trial')  -- the request that tries whether the site answers again

local function bury(id, entry, reason)
    redis.call('HSET', dead_letters, id, cjson.encode({reason = reason, at = now}) .. '\n' .. entry)
    redis.call('HDEL', hangs_by_id, id)
    ended.dead = ended.dead + 1
end

for _, finish in ipairs(given.ends) do
    local id, how, reason = unpack(finish)
    -- Nothing there: another worker has had the request since this one's leases ended, and it counts for that one.
    local entry = redis.call('HGET', leases, id)
    if entry then
        redis.call('HDEL', leases, id)
        if id == trial then
            redis.call('HDEL', circuit, 'probe', 'trial')  -- another one may try, if this one brought no news
            trial = false
        end
        if how == 'dead' then
            bury(id, entry, reason)
        else
            ended[how] = ended[how] + 1
        end
        if how == 'done' then
            redis.call('HDEL', failed_ones, id)
            redis.call('HDEL', hangs_by_id, id)
        elseif how == 'failed' then
            redis.call('HSET', failed_ones, id, entry)
        elseif how == 'back' then
            local level, deliveries, rest = entry:match('^(%d)(%d%d)(.*)$')
            redis.call('LPUSH', KEYS[4 + level], level .. string.format('%02d', deliveries - 1) .. rest)
        end
    end
end

-- Circuit and budget ---------------------------------------------------------------------------------------------------
if given.refusal then
    local reason, pause = unpack(given.refusal)
    local trips = number(circuit, 'trips', 0, 1e6, true)
    local open = number(circuit, 'until', 0, now + LONGEST_PAUSE) > now
    if not open then  -- what other workers had in flight is refused too, and is no further trip
        trips = trips + 1
        pause = math.min(pause * 2 ^ (trips - 1), 7 * 24 * 3600 * 1000)
        redis.call('HSET', circuit, 'reason', reason, 'until', string.format('%.0f', now + pause), 'trips', trips)
        redis.call('HDEL', circuit, 'probe', 'trial')
        redis.call('PEXPIRE', circuit, string.format('%.0f', pause + 14 * 24 * 3600 * 1000))
    end
elseif given.answered then
    redis.call('DEL', circuit)
end

-- `shut`: for so long nothing is handed out, as the site has refused us or, with `spent`, as the day's budget is.
local shut, reason, may_try, trying, spent = 0, false, false, false, false
local was_tripped = redis.call('HEXISTS', circuit, 'until') == 1
local tripped = {
    number(circuit, 'until', false, now + LONGEST_PAUSE),
    number(circuit, 'probe', false, now + LONGEST_PAUSE),
    unpack(redis.call('HMGET', circuit, 'reason', 'trial')),
}
if was_tripped and not tripped[1] then
    -- Nobody knows any more until when the site is not to be asked.
    tripped[1] = now + 3600000
    redis.call('HSET', circuit, 'until', string.format('%.0f', tripped[1]))
end
if tripped[1] then
    reason = tripped[3]
    trying = tripped[4] and redis.call('HEXISTS', leases, tripped[4]) == 1
    if trying then
        tripped[2] = now + given.lease
        redis.call('HSET', circuit, 'probe', string.format('%.0f', tripped[2]))
    end
    shut = math.max(0, tripped[1] - now, (tripped[2] or 0) - now)
    may_try = shut == 0
end

local gap = given.gap
local start = math.max(number(budget, 'next', 0, now + LONGEST_PAUSE + 100 * gap), now - (given.burst - 1) * gap) + given.spent * gap
local day = math.floor(now / 86400000)
local used = given.spent - given.unsent
if number(budget, 'day', 0, 1e9) == day then
    used = used + number(budget, 'used', 0, 1e15)
end
used = math.max(0, used)
if given.per_day > 0 and used >= given.per_day and shut == 0 then
    shut, reason, may_try, spent = (day + 1) * 86400000 - now, 'the budget of the day is spent', false, true
end

-- Hand out -------------------------------------------------------------------------------------------------------------
local lengths, waiting = {}, 0
for level = 0, 2 do
    lengths[level] = redis.call('LLEN', KEYS[4 + level])
    waiting = waiting + lengths[level]
end
local waiting_before = waiting - queued - ended.back

local want = given.want
if lost or spent then
    want = 0
elseif shut > 0 then
    want = given.regardless and want or 0
elseif may_try then
    want = math.min(want, 1)
end
local sharing = redis.call('ZCARD', workers)
if sharing > 1 then
    -- The last ones are shared out, so that no worker is left with many while others have none.
    want = math.min(want, math.ceil(waiting / 2 / sharing))
end

local handed_out = {}
local pops = tonumber(redis.call('HGET', state, 'pops') or 0)

local function next_entry()
    pops = pops + 1
    -- One in eight is taken from the lowest level, and one from that in the middle, so that none starves.
    local first = pops % 8 == 0 and 2 or pops % 8 == 4 and 1 or 0
    for _, level in ipairs({first, 0, 1, 2}) do
        if lengths[level] > 0 then
            lengths[level] = lengths[level] - 1
            return redis.call('LPOP', KEYS[4 + level])
        end
    end
end

local ENTRY = '^([012])(%d%d)(' .. ('%x'):rep(32) .. ')'
local taken, held = 0, redis.call('HLEN', leases)
while taken < want do
    if shut == 0 and gap > 0 and start - now > 500 or given.per_day > 0 and used >= given.per_day and shut == 0 then
        break
    end
    local entry = next_entry()
    if not entry then
        break
    end
    waiting = waiting - 1
    local level, deliveries, id = entry:match(ENTRY)
    deliveries = tonumber(deliveries)
    local last = deliveries and deliveries + 1 >= given.deliveries
    local hangs = id and number(hangs_by_id, id, 0, 1e9, true)
    if not level then
        redis.call('HINCRBY', state, 'total', 1)
        bury(redis.sha1hex(entry):sub(1, 32), entry, 'not an entry of this queue')
    elseif hangs >= given.hangs then
        bury(id, entry, 'its page made a worker hang ' .. hangs .. ' times')
    elseif (deliveries > 1 or hangs > 0) and taken > 0 or last and held + taken > 0 then
        -- It may be what killed two workers, or has hung one: it is handed out by itself, so that few others share its fate; and before it would
        -- be set aside, only to a worker that holds nothing else, so that it is not set aside for what others did.
        redis.call('LPUSH', KEYS[4 + level], entry)
        waiting = waiting + 1
        break
    else
        local leased = level .. string.format('%02d', deliveries + 1) .. entry:sub(4)
        if redis.call('HSETNX', leases, id, leased) == 0 then
            -- A second copy, which passed by the dupefilter: it is done once the first one is.
            redis.call('RPUSH', KEYS[4 + level], entry)
            waiting = waiting + 1
            break
        end
        if may_try then
            redis.call('HSET', circuit, 'probe', string.format('%.0f', now + given.lease), 'trial', id)
            trying = true
        end
        taken = taken + 1
        handed_out[#handed_out + 1] = entry
        handed_out[#handed_out + 1] = math.max(0, math.ceil(start - now))
        if shut == 0 then
            start = start + gap
            used = used + 1
        end
        if deliveries > 1 or hangs > 0 or last then
            break
        end
    end
end
if taken > 0 then
    redis.call('HSET', state, 'pops', pops)
end
if (taken > 0 and shut == 0) or given.spent > 0 or given.unsent > 0 then
    redis.call('HSET', budget, 'next', string.format('%.3f', start), 'day', day, 'used', used)
    redis.call('EXPIRE', budget, 2 * 86400)
end

-- Count ----------------------------------------------------------------------------------------------------------------
local failed = ended.failed + ended.dead
if ended.done > 0 then
    redis.call('HINCRBY', state, 'done', ended.done)
    redis.call('HINCRBY', KEYS[11], given.node .. ' done', ended.done)
end
if failed > 0 then
    redis.call('HINCRBY', state, 'failed', failed)
    redis.call('HINCRBY', KEYS[11], given.node .. ' failed', failed)
end
if ended.done + failed > 0 then
    redis.call('HSET', state, 'ended_at', string.format('%.0f', now))
end
local kept = math.max(2 * given.window, 86400000)  -- a day, as workers may wait longer than a short window
for number = 1, 12 do  -- those of the run
    redis.call('PEXPIRE', KEYS[number], kept)
end
redis.call('PEXPIRE', hangs_by_id, kept)

held = held + taken
if given.leave and held == 0 then
    redis.call('ZREM', workers, given.worker)
    redis.call('HDEL', state, pushed)
end

-- What others have put into the queue is counted when it ends, but not in the total.
local open_after = still_open()
local open = math.max(waiting + held, open_after)
if queued > 0 and open_before <= 0 then
    redis.call('HSET', state, 'busy_at', string.format('%.0f', now))
end
if open_after <= 0 and (queued > 0 or open_before > 0) then
    redis.call('HSET', state, 'idle_at', string.format('%.0f', now))
end
if sharing > 1 and (waiting > 0 and waiting_before <= 0 or open == 0 or given.answered) then
    redis.pcall('PUBLISH', given.wakeup, '')  -- where we may not, those that wait still look now and then
end
local gone = redis.call('ZRANGEBYSCORE', workers, '-inf', now, 'LIMIT', 0, 4)
local reply = {
    open = open,
    waiting = waiting,
    held = held,
    lost = lost,
    shut = shut,
    reason = reason or '',
    spent = spent,
    probing = trying,
    start = math.max(0, math.ceil(start - now)),
    dropped = dropped,
    workers = sharing,
}
if given.per_day > 0 then
    reply.left = math.max(0, given.per_day - used)
end
if #damaged > 0 then
    reply.damaged = damaged
end
if #gone > 0 then
    reply.gone = gone
end
return {cjson.encode(reply), unpack(handed_out)}
