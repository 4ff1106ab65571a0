-- Tell whether a site may be asked, by its circuit and its day's budget, which all workers share.
-- given.per_day is the budget, 0 for none.

local SET_BACK_MS = 1000

-- Return by how much a clock was ahead that has written a time, when it was set back since.
local function set_back(written_at)
    local ahead = (tonumber(written_at) or now) - now
    return ahead > SET_BACK_MS and ahead or 0
end

local function ask_site(budget_key, circuit_key)
    local circuit = redis.call('HMGET', circuit_key, 'until', 'probe_until', 'reason', 'at')
    local ahead = set_back(circuit[4])
    local closed_until = tonumber(circuit[1])
    if closed_until then
        closed_until = closed_until - ahead
    end
    local probe_until = (tonumber(circuit[2]) or 0) - ahead
    local spent = redis.call('HMGET', budget_key, 'day', 'used')
    local today = math.floor(now / DAY_MS)
    local site = {reason = circuit[3] or '', spent = false, used = 0}
    if tonumber(spent[1]) == today then
        site.used = tonumber(spent[2]) or 0
    end
    site.blocked = math.max(0, (closed_until or 0) - now, probe_until - now)
    site.probed = site.blocked > 0 and (closed_until or 0) <= now
    site.half_open = closed_until ~= nil and site.blocked == 0
    if site.blocked == 0 and given.per_day > 0 and site.used >= given.per_day then
        site.blocked = (today + 1) * DAY_MS - now
        site.spent = true
        site.reason = 'the budget of the day is spent'
    end
    return site
end
