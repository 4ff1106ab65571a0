-- Queueing requests. When Redis is out of memory, the first write fails and nothing is queued.

-- With 10 million ids, 0.1 % of new ones are dropped as seen.
local BITS = 143775874
local HASHES = 10

-- Add an id to the dedupe set; return whether it was there. The Bloom filter's hashes are made of
-- two (Kirsch and Mitzenmacher).
local function is_seen(id)
    if not given.worker.has_bloom_filter then
        return redis.call('SADD', keys.seen, id) == 0
    end
    local digest = redis.sha1hex(id)
    local first = tonumber(digest:sub(1, 12), 16)
    local second = tonumber(digest:sub(13, 24), 16)
    local is_known = true
    for number = 0, HASHES - 1 do
        local bit = (first + number * second) % BITS
        if redis.call('SETBIT', keys.seen, bit, 1) == 0 then
            is_known = false
        end
    end
    return is_known
end

-- Return whether a title is one too many for the run's limit.
local function is_beyond_limit(title)
    if not given.worker.limit or title == '' then
        return false
    end
    if redis.call('SISMEMBER', keys.titles, title) == 1 then
        return false
    end
    return redis.call('SCARD', keys.titles) >= given.worker.limit
end

-- given.pushes  a list of `Push`
-- Return how many requests were dropped, as they are open or were seen.
function steps.push()
    recover_if_lost()
    local queued = 0
    local dropped = 0
    local titles = 0
    for _, push in ipairs(given.pushes) do
        local id = push.id
        local title = push.title
        if not is_beyond_limit(title) then
            local is_open = redis.call('HEXISTS', keys.requests, id) == 1
            local was_seen = not push.is_repeatable and is_seen(id)
            if is_open or was_seen then
                dropped = dropped + 1
            else
                queued = queued + 1
                put(id, push.level, microseconds + queued, 0, title ~= '', push.body)
                if title ~= '' then
                    titles = titles + 1
                    if given.worker.limit then
                        redis.call('SADD', keys.titles, title)
                    end
                end
            end
        end
    end
    add('requested', queued)
    add('titles', titles)
    end_step()
    return dropped
end
