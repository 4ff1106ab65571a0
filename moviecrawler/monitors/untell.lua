-- Remembers that an alarm could not be told, so that it is tried again.
-- KEYS: open. ARGV: the alarm's name.
local known = redis.call('HGET', KEYS[1], ARGV[1])
if known then
  local alarm = cjson.decode(known)
  alarm.told_at = 0
  redis.call('HSET', KEYS[1], ARGV[1], cjson.encode(alarm))
end
