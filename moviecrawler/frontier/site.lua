-- Whether and when a site may be asked: its circuit and its budget, which all workers of all runs share.
--
-- given.gap (ms between two requests, 0 for any), given.burst, given.per_day (0 for any number), given.probe (ms that a probe may take)

local function ask_site(budget, circuit)
    local site = {shut = 0, reason = '', spent = false, half_open = false, day = math.floor(now / 86400000)}
    local until_, probe_until, reason = unpack(redis.call('HMGET', circuit, 'until', 'probe_until', 'reason'))
    if until_ then
        site.shut = math.max(0, until_ - now, (probe_until or 0) - now)
        site.reason, site.half_open = reason or '', site.shut == 0
    end
    local next_at, day, used = unpack(redis.call('HMGET', budget, 'next', 'day', 'used'))
    site.start = math.max(tonumber(next_at) or 0, now - (given.burst - 1) * given.gap)
    site.used = tonumber(day) == site.day and tonumber(used) or 0
    if site.shut == 0 and given.per_day > 0 and site.used >= given.per_day then
        site.shut, site.spent, site.reason = (site.day + 1) * 86400000 - now, true, 'the budget of the day is spent'
    end
    return site
end

-- Charge one request; return the ms until it may be sent. While the circuit is half-open, it is the probe.
local function charge(site, budget, circuit)
    local delay = math.max(0, math.ceil(site.start - now))
    site.start, site.used = site.start + given.gap, site.used + 1
    redis.call('HSET', budget, 'next', string.format('%.3f', site.start), 'day', site.day, 'used', site.used)
    redis.call('EXPIRE', budget, 2 * 86400)
    if site.half_open then
        redis.call('HSET', circuit, 'probe_until', now + given.probe)
    end
    return delay
end
