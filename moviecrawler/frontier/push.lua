-- Queue requests that the run has not seen.
--
-- When Redis is out of memory, the first write fails and nothing is queued.
--
-- given.pushes  {{level, id, body, whether it is dropped when seen, id of the title or ''}, …}
-- given.limit   the most titles that the run asks for, 0 for any number
-- given.bloom   whether a Bloom filter remembers what was seen, and not a set
-- Returns {how many were seen before, how many were above the limit}

local BITS, HASHES = 143775874, 10  -- of 10 million ids, 0.1 % of new ones are taken for seen

-- Remember an id; return whether it was there. Two parts of a digest make all of a Bloom filter's hashes (Kirsch and Mitzenmacher).
local function is_seen(id)
    if not given.bloom then
        return redis.call('SADD', seen, id) == 0
    end
    local digest, arguments, known = redis.sha1hex(id), {}, true
    local first, second = tonumber(digest:sub(1, 12), 16), tonumber(digest:sub(13, 24), 16)
    for number = 0, HASHES - 1 do
        for _, argument in ipairs({'SET', 'u1', (first + number * second) % BITS, 1}) do
            arguments[#arguments + 1] = argument
        end
    end
    for _, bit in ipairs(redis.call('BITFIELD', seen, unpack(arguments))) do
        known = known and bit == 1
    end
    return known
end

local queued, filtered, above = 0, 0, 0
local order = tonumber(redis.call('HGET', state, 'order'))
for _, push in ipairs(given.pushes) do
    local level, id, body, is_filtered, title = unpack(push)
    local is_counted = given.limit > 0 and title ~= ''
    if is_counted and redis.call('SISMEMBER', titles, title) == 0 and redis.call('SCARD', titles) >= given.limit then
        above = above + 1
    elseif is_seen(id) and is_filtered or redis.call('HEXISTS', requests, id) == 1 then
        filtered = filtered + 1
    else
        if is_counted then
            redis.call('SADD', titles, title)
        end
        queued = queued + 1
        put(id, level, order + queued, 0, body)
    end
end
redis.call('HINCRBY', state, 'order', queued)
redis.call('HINCRBY', state, 'total', queued)
redis.call('HINCRBY', state, 'filtered', filtered)
redis.call('HINCRBY', state, 'above_limit', above)
end_step()
return {filtered, above}
