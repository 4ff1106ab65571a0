-- Queue a dead letter again. It joins the pass that is under way; otherwise it waits for the next.
--
-- KEYS  as in run.lua
-- given.id  the letter's
-- Returns 1 when the letter was there

local letter = redis.call('HGET', dead_key, given.id)
if not letter then
    return 0
end
local state = redis.call('HMGET', state_key, 'requested', 'over_at')
if state[1] and not state[2] then
    queue_letter(given.id, letter, 0)
    redis.call('HDEL', dead_key, given.id)
    end_step()
else
    redis.call('HSET', requeued_key, given.id, letter)
    redis.call('PEXPIRE', requeued_key, DEAD_MS)
    redis.call('HDEL', dead_key, given.id)
    redis.call('ZADD', runs_key, now, given.run)
end
return 1
