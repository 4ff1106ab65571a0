-- Take runs out of a site's lists: of both when nothing is left of them, of the current ones when nobody has begun with them since.
--
-- KEYS  1 runs  2 current runs  3… state of each run
-- ARGV  for each: its name, and when a worker last began with it (ms), as was seen, or ''

for place = 3, #KEYS do
    local run, seen = ARGV[2 * place - 5], ARGV[2 * place - 4]
    if redis.call('EXISTS', KEYS[place]) == 0 then
        redis.call('ZREM', KEYS[1], run)
        redis.call('ZREM', KEYS[2], run)
    elseif redis.call('ZSCORE', KEYS[2], run) == seen then
        redis.call('ZREM', KEYS[2], run)
    end
end
