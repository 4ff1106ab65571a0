-- Tell whether a site may be asked, by its circuit and its day's budget, which all workers share.
-- given.per_day is the budget, 0 for none.

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

local function move_site_back(budget_key, circuit_key)
    move_back(budget_key, {'next'})
    move_back(circuit_key, {'until', 'probe_until'})
end

-- Return a `SiteReply`, the time of the next turn, and its day, to which a request is charged.
local function ask_site(budget_key, circuit_key)
    local circuit = redis.call('HMGET', circuit_key, 'until', 'probe_until', 'reason')
    local closed_until = tonumber(circuit[1])
    local probe_until = tonumber(circuit[2]) or 0
    local budget = redis.call('HMGET', budget_key, 'next', 'day', 'used')
    local turn = math.max(tonumber(budget[1]) or 0, now)
    local day = math.floor(turn / DAY_MS)
    local charged_day = tonumber(budget[2]) or 0
    local site = {reason = circuit[3] or '', spent = false, used = 0}
    if charged_day >= day then
        site.used = tonumber(budget[3]) or 0
    end
    if charged_day > day then  -- by a clock that was ahead
        redis.call('HSET', budget_key, 'day', day)
    end
    site.blocked = math.max(0, (closed_until or 0) - now, probe_until - now)
    site.probed = site.blocked > 0 and (closed_until or 0) <= now
    site.half_open = closed_until ~= nil and site.blocked == 0
    if site.blocked == 0 and given.per_day > 0 and site.used >= given.per_day then
        site.blocked = (day + 1) * DAY_MS - now
        site.spent = true
        site.reason = 'the daily budget is exhausted'
    end
    return site, turn, day
end
