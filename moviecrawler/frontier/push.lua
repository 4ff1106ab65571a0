-- Queue requests that the run has not seen. When Redis is out of memory, the first write fails and nothing is queued.
--
-- given.pushes  {{level, id, body, id of the title or ''}, …}
-- given.limit   how many titles the run asks for, at most; 0 for no limit
-- given.bloom   whether the dedupe set is a Bloom filter
-- Returns how many requests were in the dedupe set

local BITS, HASHES = 143775874, 10  -- with 10 million ids, 0.1 % of new ones are dropped as seen

-- Add an id to the dedupe set; return whether it was there. The Bloom filter's hashes are made of two (Kirsch and Mitzenmacher).
local function is_seen(id)
    if not given.bloom then
        return redis.call('SADD', seen, id) == 0
    end
    local digest, known = redis.sha1hex(id), true
    local first, second = tonumber(digest:sub(1, 12), 16), tonumber(digest:sub(13, 24), 16)
    for number = 0, HASHES - 1 do
        known = redis.call('SETBIT', seen, (first + number * second) % BITS, 1) == 1 and known
    end
    return known
end

local queued, filtered = 0, 0
for _, push in ipairs(given.pushes) do
    local level, id, body, title = unpack(push)
    local is_counted = given.limit > 0 and title ~= '' and redis.call('SISMEMBER', titles, title) == 0
    if not is_counted or redis.call('SCARD', titles) < given.limit then
        if is_seen(id) or redis.call('HEXISTS', requests, id) == 1 then
            filtered = filtered + 1
        else
            queued = queued + 1
            put(id, level, microseconds + queued, 0, body)
            if is_counted then
                redis.call('SADD', titles, title)
            end
        end
    end
end
redis.call('HINCRBY', state, 'total', queued)
end_step()
return filtered
