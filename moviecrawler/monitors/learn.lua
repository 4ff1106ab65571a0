-- Adds pages to the levels of a site, of which the older ones count less and less.
-- KEYS: levels.
-- ARGV: the most pages that a level weighs, seconds to keep it; then `<group>/<field>`, pages and how many had it, for each.
local most = tonumber(ARGV[1])
for place = 3, #ARGV, 3 do
  local known = redis.call('HGET', KEYS[1], ARGV[place]) or '0 0'
  local pages, having = known:match('^(%S+) (%S+)$')
  pages = tonumber(pages) + tonumber(ARGV[place + 1])
  having = tonumber(having) + tonumber(ARGV[place + 2])
  if pages > most then
    having = having * most / pages
    pages = most
  end
  redis.call('HSET', KEYS[1], ARGV[place], string.format('%.6g %.6g', pages, having))
end
redis.call('EXPIRE', KEYS[1], ARGV[2])
