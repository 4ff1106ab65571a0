-- Charge a request to the budget of a site, or report that the site has refused us or has answered the probe.
--
-- KEYS  1 budget  2 circuit
-- given.charge    whether to charge a request
-- given.gap       ms between two requests, 0 for no limit
-- given.refusal   {reason, ms} when the site has refused us
-- given.answered  whether the site has answered the probe
-- Returns the JSON of a `SiteReply`

local budget, circuit = unpack(KEYS)
if given.refusal then
    local reason, pause = unpack(given.refusal)
    local until_, trips = unpack(redis.call('HMGET', circuit, 'until', 'trips'))
    if not until_ or until_ + 0 <= now then  -- otherwise an earlier request is refused only now
        trips = (trips or 0) + 1
        pause = math.min(pause * 2 ^ (trips - 1), 7 * 86400000)
        redis.call('DEL', circuit)
        redis.call('HSET', circuit, 'reason', reason, 'until', now + pause, 'trips', trips)
        redis.call('PEXPIRE', circuit, pause + 14 * 86400000)
    end
elseif given.answered then
    redis.call('DEL', circuit)
end
local site = ask_site(budget, circuit)
if given.charge and site.blocked == 0 then
    local start = math.max(tonumber(redis.call('HGET', budget, 'next')) or 0, now)
    site.delay, site.used, site.probing = math.max(0, math.ceil(start - now)), site.used + 1, site.half_open
    redis.call('HSET', budget, 'next', string.format('%.3f', start + given.gap), 'day', site.day, 'used', site.used)
    redis.call('EXPIRE', budget, 2 * 86400)
    if site.probing then
        redis.call('HSET', circuit, 'probe_until', now + 60000)  -- after that another worker sends one
    end
end
return cjson.encode(site)
