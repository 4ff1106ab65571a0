-- Adds pages to what is known of a site's pages.
-- KEYS: places, latest, examples, coverage of the day, and the levels of an earlier version, which are dropped.
-- ARGV: the most pages that a level weighs, the signs of latest pages to keep, seconds to keep all, and JSON of the pages: `levels` (field of `places` ->
-- pages, silent ones, those that state an absence), `marks` (field -> signs), `examples` (field -> JSON), `coverage` (its field -> number).
local most, kept, seconds = tonumber(ARGV[1]), tonumber(ARGV[2]), ARGV[3]
local seen = cjson.decode(ARGV[4])
for name, added in pairs(seen.levels) do
  local known = redis.call('HGET', KEYS[1], name) or '0 0 0'
  local pages, silent, absent = known:match('^(%S+) (%S+) (%S+)$')
  pages, silent, absent = pages + added[1], silent + added[2], absent + added[3]
  local weight = pages > most and most / pages or 1
  redis.call('HSET', KEYS[1], name, string.format('%.6g %.6g %.6g', pages * weight, silent * weight, absent * weight))
end
for name, signs in pairs(seen.marks) do
  local known = redis.call('HGET', KEYS[2], name) or ''
  redis.call('HSET', KEYS[2], name, (known .. signs):sub(-kept))
end
for name, example in pairs(seen.examples) do
  redis.call('HSET', KEYS[3], name, example)
end
for name, number in pairs(seen.coverage) do
  redis.call('HINCRBY', KEYS[4], name, number)
end
for place = 1, 4 do
  redis.call('EXPIRE', KEYS[place], seconds)
end
redis.call('DEL', KEYS[5])
