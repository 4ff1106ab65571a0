-- Ends an alarm that nobody has seen standing for a while, and returns its JSON; nothing when there is none to end.
-- KEYS: open, history.
-- ARGV: the alarm's name, now (s), seconds that nobody must have seen it, `what` of the event, events to keep.
local known = redis.call('HGET', KEYS[1], ARGV[1])
if not known then
  return false
end
local alarm = cjson.decode(known)
if alarm.seen_at + tonumber(ARGV[3]) > tonumber(ARGV[2]) then
  return false
end
redis.call('HDEL', KEYS[1], ARGV[1])
redis.call('LPUSH', KEYS[2], cjson.encode({at = tonumber(ARGV[2]), what = ARGV[4], alarm = alarm}))
redis.call('LTRIM', KEYS[2], 0, ARGV[5] - 1)
return known
