-- Ask for a turn at a site outside the queue, or report that it has refused us or answered the probe.
--
-- KEYS  1 budget  2 circuit
-- given.turn      whether to charge a request
-- given.refusal   {reason, ms} when the site has refused us, else false
-- given.answered  whether it has answered the probe
-- Returns JSON of what `Turn` holds

local budget, circuit = KEYS[1], KEYS[2]
if given.refusal then
    local reason, pause = unpack(given.refusal)
    local until_, trips = unpack(redis.call('HMGET', circuit, 'until', 'trips'))
    if not until_ or until_ + 0 <= now then  -- else what was in flight is refused as well
        trips = (trips or 0) + 1
        pause = math.min(pause * 2 ^ (trips - 1), 7 * 86400000)
        redis.call('DEL', circuit)
        redis.call('HSET', circuit, 'reason', reason, 'until', now + pause, 'trips', trips)
        redis.call('PEXPIRE', circuit, pause + 14 * 86400000)
    end
elseif given.answered then
    redis.call('DEL', circuit)
end
local site, delay, probing = ask_site(budget, circuit), 0, false
if given.turn and site.shut == 0 then
    probing = site.half_open
    delay = charge(site, budget, circuit)
end
return cjson.encode({
    shut = site.shut,
    reason = site.reason,
    spent = site.spent,
    probing = probing,
    delay = delay,
    used = site.used,
})
