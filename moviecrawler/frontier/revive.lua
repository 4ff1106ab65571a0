-- Queue requests that have failed once more, when the run has nothing else to do.
--
-- KEYS  1 state  2 failed  3-5 requests by level  6 what the rounds have queued
-- ARGV  1 how many at most  2 whether the run has begun to (0 or 1), so that what is queued now are those  3 digest of the arguments
-- Returns how many were queued

local counted = redis.call('HMGET', KEYS[1], 'total', 'done', 'failed')
local open = (tonumber(counted[1]) or 0) - (tonumber(counted[2]) or 0) - (tonumber(counted[3]) or 0)
if open > 0 and ARGV[2] == '0' then
    return 0
end
local round = redis.call('HGET', KEYS[1], 'round:' .. ARGV[3])
local function in_round(id)  -- as in exchange.lua
    return (redis.sha1hex(id .. ' ' .. round):sub(1, 32):gsub('..', function(hex) return string.char(tonumber(hex, 16)) end))
end
local some = redis.call('HRANDFIELD', KEYS[2], ARGV[1], 'WITHVALUES')
for i = 1, #some, 2 do
    local level, rest = some[i + 1]:match('^([012])%d%d(.*)$')
    -- What is damaged is set aside when it is handed out.
    redis.call('RPUSH', KEYS[3 + (level or 2)], level and level .. '00' .. rest or some[i + 1])
    redis.call('HDEL', KEYS[2], some[i])
    if round then
        -- So that the round does not queue it a second time.
        redis.call('SADD', KEYS[6], in_round(some[i]))
    end
end
if #some > 0 then
    redis.call('HINCRBY', KEYS[1], 'failed', -#some / 2)
end
return #some / 2
