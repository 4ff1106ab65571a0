-- Ending leases, and counting what became of their requests.

local function count(outcomes, was_title)
    local requested = -1
    local titles = was_title and -1 or 0
    for outcome, number in pairs(outcomes) do
        add(outcome, number)
        requested = requested + number
        if TITLE_OUTCOMES[outcome] then
            titles = titles + number
        end
    end
    add('requested', requested)
    add('titles', titles)
end

local function forget(id)
    redis.call('HDEL', keys.requests, id)
    redis.call('ZREM', keys.leases, id)
    redis.call('ZREM', keys.queue, id)
end

-- given.ends  a list of `End`
function steps.finish()
    recover_if_lost()
    -- Free memory before anything else is written: without memory, Redis refuses a script at its
    -- first write, unless that one frees memory.
    redis.call('ZREM', keys.queue, '')
    for _, finish in ipairs(given.ends) do
        local id = finish.id
        local kind = finish.kind
        local number = finish.number
        local outcomes = finish.outcomes
        local is_stored = outcomes.stored ~= nil
        local value = redis.call('HGET', keys.requests, id)
        local is_current = false
        local was_title = id:sub(1, 5) == 'seed-'
        if value then
            local _, deliveries, is_title = parse(value)
            is_current = deliveries == number and redis.call('ZSCORE', keys.queue, id) == false
            was_title = was_title or is_title
        end
        if kind == 'done' and value and (is_current or is_stored) then
            forget(id)
            count(outcomes, was_title)
        elseif kind == 'done' and not value and redis.call('ZSCORE', keys.leases, id) then
            -- Its request was lost while this worker was at it. Lists and others are read or
            -- unread.
            redis.call('ZREM', keys.leases, id)
            count(outcomes, not (outcomes.read or outcomes.unread))
        elseif kind == 'done' and is_stored then
            local letter = redis.call('HGET', keys.dead, id)
            if letter then  -- its worker had been taken for dead, and was only slow
                local _, _, is_title = parse(letter:match('\n(.*)') or letter)
                if is_counted(letter) then
                    add('dead', -1)
                    count(outcomes, was_title or is_title)
                end
                redis.call('HDEL', keys.dead, id)
            end
        elseif kind == 'dead' and is_current then
            make_dead_letter(id, value, finish.reason)
        elseif kind == 'back' and is_current then
            put_back(id, value, math.max(0, number - 1))
        elseif kind == 'last' and is_current then
            put_back(id, value, math.max(0, number - 1), microseconds)
        end
    end
    end_step()
    return true
end
