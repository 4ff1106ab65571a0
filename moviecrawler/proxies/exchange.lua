-- One exchange of a worker with the other workers of a site: add its figures and quarantines, grant probes, return the quarantines of all.
--
-- KEYS  1 quarantines  2 figures of this hour  3… probes: those wanted, then those that have ended
-- ARGV  1 MessagePack map:
--   me           this worker
--   probe        ms for which one worker has a probe
--   wanted       how many of the probes are wanted
--   figures      {{field, number}, …}: to be added to those of this hour
--   quarantines  {{proxy's id, JSON}, …}: new or ended ones; the probes of these have ended
--   keep_figures, keep_quarantines     s
-- Returns {s since 1970, microseconds, {whether each wanted probe is this worker's: 1 or 0}, quarantines}

local given = cmsgpack.unpack(ARGV[1])
local time = redis.call('TIME')

local granted = {}
for place = 1, given.wanted do
    granted[place] = redis.call('SET', KEYS[2 + place], given.me, 'NX', 'PX', given.probe) and 1 or 0
end

for _, figure in ipairs(given.figures) do
    redis.call('HINCRBY', KEYS[2], figure[1], figure[2])
end
if #given.figures > 0 then
    redis.call('EXPIRE', KEYS[2], given.keep_figures)
end

for place, quarantine in ipairs(given.quarantines) do
    redis.call('HSET', KEYS[1], quarantine[1], quarantine[2])
    redis.call('DEL', KEYS[2 + given.wanted + place])
end
if #given.quarantines > 0 then
    redis.call('EXPIRE', KEYS[1], given.keep_quarantines)
end

return {time[1], time[2], granted, redis.call('HGETALL', KEYS[1])}
