-- Put a dead letter back into the queue, as if it had never been handed out.
--
-- KEYS  1 state  2 dead letters  3-5 requests by level
-- ARGV  1 id
-- Returns 1; 0 when there is no such dead letter, or it is no request

local letter = redis.call('HGET', KEYS[2], ARGV[1])
if not letter then
    return 0
end
local level, id, request = letter:match('^[^\n]*\n([012])%d%d(%x+)(.*)$')
if not id or (id .. request):sub(1, 32) ~= ARGV[1] then
    return 0
end
redis.call('RPUSH', KEYS[3 + level], level .. '00' .. id .. request)
local left = redis.call('PTTL', KEYS[2])
if left > 0 then
    redis.call('PEXPIRE', KEYS[3 + level], left)  -- with the rest of the run, if nobody goes on with it
end
redis.call('HDEL', KEYS[2], ARGV[1])
redis.call('HINCRBY', KEYS[1], 'failed', -1)
return 1
