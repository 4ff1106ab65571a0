-- Charge a request to the budget of a site, or note that it is blocking us or answered the probe.
--
-- KEYS  1 budget  2 circuit
-- given.charge        whether to charge a request
-- given.gap           ms between two requests, 0 for no limit
-- given.refusal       its reason and pause (ms), when the site is blocking us
-- given.has_answered  whether the site has answered the probe
-- Returns the JSON of a `SiteReply`

local PROBE_MS = 60000
local LONGEST_PAUSE_MS = 7 * DAY_MS

local budget_key = KEYS[1]
local circuit_key = KEYS[2]

move_site_back(budget_key, circuit_key)
if given.refusal then
    local reason = given.refusal.reason
    local pause = given.refusal.pause
    local circuit = redis.call('HMGET', circuit_key, 'until', 'trips')
    local closed_until = tonumber(circuit[1])
    if closed_until and closed_until > now then  -- a request that was on its way is refused, too
        closed_until = math.max(closed_until, now + pause)
    else
        local trips = (tonumber(circuit[2]) or 0) + 1
        closed_until = now + math.min(pause * 2 ^ (trips - 1), LONGEST_PAUSE_MS)
        redis.call('DEL', circuit_key)
        redis.call('HSET', circuit_key, 'reason', reason, 'trips', trips)
    end
    redis.call('HSET', circuit_key, 'until', closed_until, 'at', now)
    redis.call('PEXPIRE', circuit_key, math.ceil(closed_until - now) + 14 * DAY_MS)
elseif given.has_answered then
    redis.call('DEL', circuit_key)
end

local site, turn, day = ask_site(budget_key, circuit_key)
if given.charge and site.blocked == 0 then
    site.delay = math.ceil(turn - now)
    site.used = site.used + 1
    site.probing = site.half_open
    redis.call('HSET', budget_key, 'next', string.format('%.3f', turn + given.gap))
    redis.call('HSET', budget_key, 'day', day, 'used', site.used, 'at', now)
    redis.call('EXPIRE', budget_key, 2 * 86400)
    if site.probing then
        -- After that another worker sends one.
        redis.call('HSET', circuit_key, 'probe_until', now + PROBE_MS, 'at', now)
    end
end
return cjson.encode(site)
