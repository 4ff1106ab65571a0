-- What operators do with dead letters.

-- Queue a dead letter again. It joins the pass that is under way; otherwise it waits for the next.
function steps.requeue()
    local letter = redis.call('HGET', keys.dead, given.letter_id)
    if not letter then
        return false
    end
    local state = redis.call('HMGET', keys.state, 'requested', 'over_at')
    if state[1] and not state[2] then
        queue_letter(given.letter_id, letter, 0)
        redis.call('HDEL', keys.dead, given.letter_id)
        end_step()
    else
        redis.call('HSET', keys.requeued, given.letter_id, letter)
        redis.call('PEXPIRE', keys.requeued, DEAD_MS)
        redis.call('HDEL', keys.dead, given.letter_id)
        redis.call('ZADD', keys.runs, now, given.run)
    end
    return true
end

function steps.drop_letter()
    return redis.call('HDEL', keys.dead, given.letter_id) == 1
end

-- Return `letters`, a list of `DeadLetter`.
function steps.letters()
    local letters = {}
    local fields = redis.call('HGETALL', keys.dead)
    for position = 1, #fields, 2 do
        local head, value = fields[position + 1]:match('^([^\n]*)\n?(.*)$')
        local _, _, _, body = parse(value)
        head = cjson.decode(head)
        letters[#letters + 1] = {
            run = {given.site, given.run},
            id = fields[position],
            reason = head.reason,
            at = head.at / 1000,
            body = body,
        }
    end
    return {letters = list(letters)}
end
