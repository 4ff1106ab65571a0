-- End leases, or queue dead letters again.
--
-- given.ends  {{id, how, number of the delivery, reason}, …}; how:
--   done   all of its items are durable; any worker may say so, and it counts once
--   back   queue it again; this delivery does not count
--   dead   make it a dead letter
--   again  queue the dead letter again, with no deliveries
-- Returns how many dead letters were queued again

local done, failed, again = 0, 0, 0
for _, finish in ipairs(given.ends) do
    local id, how, number, reason = unpack(finish)
    local value = redis.call('HGET', how == 'again' and dead or requests, id)
    if how == 'done' then
        local found = redis.call('HDEL', requests, id) + redis.call('ZREM', leases, id) + redis.call('ZREM', queue, id)
        local was_dead = redis.call('HDEL', dead, id)  -- its worker had been taken for dead, and was only slow
        done = done + math.min(1, found + was_dead)
        failed = failed - was_dead
    elseif how == 'again' and value then
        redis.call('HDEL', dead, id)
        put_back(id, value:match('\n(.*)'), 0)
        failed, again = failed - 1, again + 1
    elseif value and select(2, parse(value)) == number then  -- otherwise it was delivered to another worker since
        if how == 'dead' then
            make_dead_letter(id, value, reason)
        else
            put_back(id, value, number - 1)
        end
    end
end
redis.call('HINCRBY', state, 'done', done)
redis.call('HINCRBY', state, 'failed', failed)
end_step()
return again
