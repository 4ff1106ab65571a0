-- End leases, or queue dead letters again.
--
-- KEYS  as in run.lua, then 9 budget
-- given.ends  {{id, how, number of the delivery, reason, day for whose budget it was charged and not sent, or -1}, …}; how:
--   done   everything that came of it is safe: this counts from anybody, once
--   back   queue it again, as if it had not been handed out
--   dead   make it a dead letter
--   again  queue the dead letter again, as if it had never been handed out

-- Redis that is out of memory refuses a script at its first write, unless that could only free some.
redis.call('ZREM', queue, '')

local done, again = 0, 0
for _, finish in ipairs(given.ends) do
    local id, how, number, reason, day = unpack(finish)
    local value = redis.call('HGET', how == 'again' and dead or requests, id)
    if how == 'done' then
        local found = redis.call('HDEL', requests, id) + redis.call('ZREM', leases, id) + redis.call('ZREM', queue, id)
        local was_dead = redis.call('HDEL', dead, id)  -- of a worker that was taken for dead
        done = done + math.min(1, found + was_dead)
        if was_dead == 1 then
            redis.call('HINCRBY', state, 'failed', -1)
        end
    elseif how == 'again' then
        local level, _, body = parse(value and value:match('^[^\n]*\n(.*)$'))
        if level then
            put(id, level, 0, 0, body)
            redis.call('HDEL', dead, id)
            redis.call('HINCRBY', state, 'failed', -1)
            again = again + 1
        end
    elseif select(2, parse(value)) == number then  -- else another worker has it, or had it since
        if how == 'dead' then
            bury(id, value, reason)
        else
            put_back(id, value, number - 1)
            if tonumber(redis.call('HGET', KEYS[9], 'day')) == day then
                redis.call('HINCRBY', KEYS[9], 'used', -1)
            end
        end
    end
end
redis.call('HINCRBY', state, 'done', done)
end_step()
return again
