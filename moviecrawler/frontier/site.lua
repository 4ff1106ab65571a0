-- Whether a site may be asked, by its circuit and its day's budget, which all workers share; and
-- what else they know of it.

local LONGEST_PAUSE_MS = given.terms.longest_pause_seconds * 1000
local BANS_MS = 30 * DAY_MS
local SET_BACK_MS = 1000

-- Move times of a key back by as much as the clock was ahead that has written them, when it was set
-- back since.
local function move_back(key, names)
    local ahead = (tonumber(redis.call('HGET', key, 'at')) or now) - now
    if ahead <= SET_BACK_MS then
        return
    end
    for _, name in ipairs(names) do
        local moved = tonumber(redis.call('HGET', key, name))
        if moved then
            redis.call('HSET', key, name, string.format('%.3f', moved - ahead))
        end
    end
    redis.call('HSET', key, 'at', now)
end

local function move_site_back()
    move_back(keys.budget, {'next'})
    move_back(keys.circuit, {'until', 'probe_until'})
end

-- Return a `SiteReply`, the time of the next turn, and its day, to which a request is charged.
local function ask_site()
    local circuit = redis.call('HMGET', keys.circuit, 'until', 'probe_until', 'reason')
    local closed_until = tonumber(circuit[1])
    local probe_until = tonumber(circuit[2]) or 0
    local charged = redis.call('HMGET', keys.budget, 'next', 'day', 'used')
    local turn = math.max(tonumber(charged[1]) or 0, now)
    local day = math.floor(turn / DAY_MS)
    local charged_day = tonumber(charged[2]) or 0
    local site = {state = 'open', blocked = 0, reason = circuit[3] or '', used = 0}
    if charged_day >= day then
        site.used = tonumber(charged[3]) or 0
    end
    if charged_day > day then  -- by a clock that was ahead
        redis.call('HSET', keys.budget, 'day', day)
    end
    if closed_until and closed_until > now then
        site.state = 'refused'
        site.blocked = math.ceil(math.max(closed_until, probe_until) - now)
    elseif probe_until > now then
        site.state = 'probed'
        site.blocked = math.ceil(probe_until - now)
    elseif site.used >= (given.budget.per_day or math.huge) then
        site.state = 'budget_spent'
        site.blocked = (day + 1) * DAY_MS - now
        site.reason = 'the daily budget is exhausted'
    elseif closed_until then
        site.state = 'half_open'
    end
    return site, turn, day
end

-- Note that the site is blocking us.
local function open_circuit(reason, pause)
    local circuit = redis.call('HMGET', keys.circuit, 'until', 'trips')
    local closed_until = tonumber(circuit[1])
    if closed_until and closed_until > now then  -- a request that was on its way is refused, too
        closed_until = math.max(closed_until, now + pause)
    else
        local trips = (tonumber(circuit[2]) or 0) + 1
        closed_until = now + math.min(pause * 2 ^ (trips - 1), LONGEST_PAUSE_MS)
        redis.call('DEL', keys.circuit)
        redis.call('HSET', keys.circuit, 'reason', reason, 'trips', trips)
    end
    redis.call('HSET', keys.circuit, 'until', closed_until, 'at', now)
    local lifetime = math.ceil(closed_until - now) + given.terms.circuit_seconds * 1000
    redis.call('PEXPIRE', keys.circuit, lifetime)
end

-- Charge a request to the budget of a site, or note that it is blocking us or answered the probe.
-- Return a `SiteReply`.
function steps.ask()
    move_site_back()
    if given.refusal then
        open_circuit(given.refusal.reason, math.floor(given.refusal.seconds * 1000))
    elseif given.has_answered then
        redis.call('DEL', keys.circuit)
    end
    local site, turn, day = ask_site()
    if given.charge and site.blocked == 0 then
        local per_second = given.budget.per_second
        local gap = per_second and 1000 / per_second * given.terms.spacing or 0
        site.delay = math.ceil(turn - now)
        site.used = site.used + 1
        site.probing = site.state == 'half_open'
        redis.call('HSET', keys.budget, 'next', string.format('%.3f', turn + gap))
        redis.call('HSET', keys.budget, 'day', day, 'used', site.used, 'at', now)
        redis.call('PEXPIRE', keys.budget, 2 * DAY_MS)
        if site.probing then
            -- After that another worker sends one.
            local probe_until = now + given.terms.probe_seconds * 1000
            redis.call('HSET', keys.circuit, 'probe_until', probe_until, 'at', now)
        end
    end
    return site
end

-- The key of a host's robots.txt is a STRING of JSON with `text` and `fetched_at` (s).
function steps.read_robots()
    local kept = redis.call('GET', 'robots:' .. LAYOUT .. ':' .. given.host)
    local is_json, robots = pcall(cjson.decode, kept)
    return is_json and type(robots) == 'table' and robots or cjson.null
end

function steps.keep_robots()
    local kept = cjson.encode({text = given.text, fetched_at = now / 1000})
    redis.call('SET', 'robots:' .. LAYOUT .. ':' .. given.host, kept, 'PX', UNUSED_MS)
    return true
end

local function byte_of(hex)
    return string.char(tonumber(hex, 16))
end

-- given.changes  JSON of a ban by the proxy's key, in which other bytes than ASCII are as in a URL;
--   empty for one to delete
function steps.exchange_bans()
    for quoted, ban in pairs(given.changes) do
        local proxy = quoted:gsub('%%(%x%x)', byte_of)
        if ban == '' then
            redis.call('HDEL', keys.bans, proxy)
        else
            redis.call('HSET', keys.bans, proxy, ban)
        end
        redis.call('PEXPIRE', keys.bans, BANS_MS)
    end
    local bans = {}
    local fields = redis.call('HGETALL', keys.bans)
    for position = 1, #fields, 2 do
        bans[fields[position]] = fields[position + 1]
    end
    return bans
end

function steps.place()
    redis.call('SETNX', keys.place, given.place)
    return redis.call('GET', keys.place)
end
