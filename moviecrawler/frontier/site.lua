-- Tell whether a site may be asked, by its circuit and its day's budget, which all workers share.
-- given.per_day is the budget, 0 for none.
local function ask_site(budget_key, circuit_key)
    local circuit = redis.call('HMGET', circuit_key, 'until', 'probe_until', 'reason')
    local closed_until = tonumber(circuit[1])
    local probe_until = tonumber(circuit[2]) or 0
    local spent = redis.call('HMGET', budget_key, 'day', 'used')
    local today = math.floor(now / DAY_MS)
    local site = {reason = circuit[3] or '', spent = false, half_open = false, used = 0}
    if tonumber(spent[1]) == today then
        site.used = tonumber(spent[2]) or 0
    end
    site.blocked = math.max(0, (closed_until or 0) - now, probe_until - now)
    site.half_open = closed_until ~= nil and site.blocked == 0
    if site.blocked == 0 and given.per_day > 0 and site.used >= given.per_day then
        site.blocked = (today + 1) * DAY_MS - now
        site.spent = true
        site.reason = 'the budget of the day is spent'
    end
    return site
end
