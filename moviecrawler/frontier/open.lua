-- Join the latest run of a name, or begin the next one.
--
-- KEYS  1 latest  2 runs
-- given.run is the name; given.arguments are the worker's
-- given.asked_at is when the worker was requested: ms since 1970, or minus the ms ago; 0 to join in any case
-- Returns {number of the run, its arguments, when it was over ('' when it is not)}

local number, prefix = redis.call('GET', KEYS[1]), KEYS[1]:match('^(.*)latest$')
local asked_at = given.asked_at < 0 and now + given.asked_at or given.asked_at
local over_at, arguments, total, done, failed =
    unpack(redis.call('HMGET', prefix .. (number or '') .. ':state', 'over_at', 'arguments', 'total', 'done', 'failed'))
if not number or over_at and (tonumber(over_at) < asked_at or total - done - failed > 0) then
    number, arguments, over_at = tostring(now), given.arguments, ''
    redis.call('HSET', prefix .. number .. ':state', 'arguments', arguments)
    redis.call('PEXPIRE', prefix .. number .. ':state', 7 * 86400000)
end
redis.call('SET', KEYS[1], number, 'PX', 8 * 86400000)
redis.call('ZADD', KEYS[2], now, given.run .. ':' .. number)
return {number, arguments or given.arguments, over_at or ''}
