-- Tell whether a site may be asked, by its circuit and its day's budget (given.per_day, 0 for none), which all workers share.
local function ask_site(budget, circuit)
    local until_, probe_until, reason = unpack(redis.call('HMGET', circuit, 'until', 'probe_until', 'reason'))
    local day, used = unpack(redis.call('HMGET', budget, 'day', 'used'))
    local site = {day = math.floor(now / 86400000), reason = reason or '', spent = false}
    site.used = tonumber(day) == site.day and tonumber(used) or 0
    site.blocked = math.max(0, (until_ or 0) - now, (probe_until or 0) - now)
    site.half_open = until_ and site.blocked == 0
    if site.blocked == 0 and given.per_day > 0 and site.used >= given.per_day then
        site.blocked, site.spent, site.reason = (site.day + 1) * 86400000 - now, true, 'the budget of the day is spent'
    end
    return site
end
