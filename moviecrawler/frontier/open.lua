-- Join the latest run of a name, or begin the next one.
--
-- KEYS  1 latest  2 runs
-- given.prefix     of the keys of all runs of that name; given.run is the name
-- given.arguments  of the worker
-- given.asked_at   when the worker was requested: ms since 1970, or minus the ms ago; 0 to join in any case
-- Returns {number of the run, its arguments, when it was over ('' when it is not)}

local number = redis.call('GET', KEYS[1])
local asked_at = given.asked_at < 0 and now + given.asked_at or given.asked_at
local arguments, over_at, total, done, failed
if number then
    over_at, arguments, total, done, failed =
        unpack(redis.call('HMGET', given.prefix .. number .. ':state', 'over_at', 'arguments', 'total', 'done', 'failed'))
end
if not number or over_at and (tonumber(over_at) < asked_at or total - done - failed > 0) then
    number, arguments, over_at = tostring(now), given.arguments, ''
    redis.call('HSET', given.prefix .. number .. ':state', 'arguments', arguments)
    redis.call('PEXPIRE', given.prefix .. number .. ':state', 7 * 86400000)
end
redis.call('SET', KEYS[1], number, 'PX', 8 * 86400000)
redis.call('ZADD', KEYS[2], now, given.run .. ':' .. number)
return {number, arguments or given.arguments, over_at or ''}
