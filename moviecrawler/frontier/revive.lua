-- Queue requests that have failed once more, when the run has nothing else to do.
--
-- KEYS  1 state  2 failed  3-5 requests by level
-- ARGV  1 how many at most  2 whether the run has begun to (0 or 1), so that what is queued now are those
-- Returns how many were queued

local counted = redis.call('HMGET', KEYS[1], 'total', 'done', 'failed')
local open = (counted[1] or 0) - (counted[2] or 0) - (counted[3] or 0)
if open > 0 and ARGV[2] == '0' then
    return 0
end
local some = redis.call('HRANDFIELD', KEYS[2], ARGV[1], 'WITHVALUES')
for i = 1, #some, 2 do
    local level, rest = some[i + 1]:match('^([012])%d%d(.*)$')
    -- What is damaged is set aside when it is handed out.
    redis.call('RPUSH', KEYS[3 + (level or 2)], level and level .. '00' .. rest or some[i + 1])
    redis.call('HDEL', KEYS[2], some[i])
end
if #some > 0 then
    redis.call('HINCRBY', KEYS[1], 'failed', -#some / 2)
end
return #some / 2
