-- Says that an alarm stands, and returns whether that is to be told: "opened", "reminder" or "".
-- KEYS: open, history.
-- ARGV: the alarm's name, its JSON, now (s), seconds between reminders, the event's JSON, events to keep.
local known = redis.call('HGET', KEYS[1], ARGV[1])
local alarm = cjson.decode(ARGV[2])
local now = tonumber(ARGV[3])
local said = ''
if known then
  local before = cjson.decode(known)
  alarm.since = before.since
  alarm.told_at = before.told_at
  if before.told_at + tonumber(ARGV[4]) <= now then
    said = before.told_at > 0 and 'reminder' or 'opened'
  end
else
  said = 'opened'
  redis.call('LPUSH', KEYS[2], ARGV[5])
  redis.call('LTRIM', KEYS[2], 0, ARGV[6] - 1)
end
if said ~= '' then
  alarm.told_at = now
end
redis.call('HSET', KEYS[1], ARGV[1], cjson.encode(alarm))
return said
