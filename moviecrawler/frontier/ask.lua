-- Charge a request to the budget of a site, or note that it has refused us or answered the probe.
--
-- KEYS  1 budget  2 circuit
-- given.charge        whether to charge a request
-- given.gap           ms between two requests, 0 for no limit
-- given.refusal       {reason, ms} when the site has refused us
-- given.has_answered  whether the site has answered the probe
-- Returns the JSON of a `SiteReply`

local PROBE_MS = 60000
local LONGEST_PAUSE_MS = 7 * DAY_MS

local budget_key = KEYS[1]
local circuit_key = KEYS[2]

if given.refusal then
    local reason = given.refusal[1]
    local pause = given.refusal[2]
    local circuit = redis.call('HMGET', circuit_key, 'until', 'trips')
    local closed_until = tonumber(circuit[1])
    if not closed_until or closed_until <= now then  -- else an earlier request is refused only now
        local trips = (tonumber(circuit[2]) or 0) + 1
        pause = math.min(pause * 2 ^ (trips - 1), LONGEST_PAUSE_MS)
        redis.call('DEL', circuit_key)
        redis.call('HSET', circuit_key, 'reason', reason, 'trips', trips)
        redis.call('HSET', circuit_key, 'until', now + pause, 'at', now)
        redis.call('PEXPIRE', circuit_key, pause + 14 * DAY_MS)
    end
elseif given.has_answered then
    redis.call('DEL', circuit_key)
end

local site = ask_site(budget_key, circuit_key)
if given.charge and site.blocked == 0 then
    local times = redis.call('HMGET', budget_key, 'next', 'at')
    local next_turn = tonumber(times[1]) or 0
    local start = math.max(next_turn - set_back(times[2]), now)
    site.delay = math.ceil(start - now)
    site.used = site.used + 1
    site.probing = site.half_open
    redis.call('HSET', budget_key, 'next', string.format('%.3f', start + given.gap))
    redis.call('HSET', budget_key, 'day', math.floor(now / DAY_MS), 'used', site.used, 'at', now)
    redis.call('EXPIRE', budget_key, 2 * 86400)
    if site.probing then
        -- After that another worker sends one.
        redis.call('HSET', circuit_key, 'probe_until', now + PROBE_MS, 'at', now)
    end
end
return cjson.encode(site)
