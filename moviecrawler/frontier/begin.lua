-- Every script begins with this: its arguments, and the time by Redis' clock, the only one that
-- leases and budgets go by.
local given = cmsgpack.unpack(ARGV[1])
local time = redis.call('TIME')
local microseconds = time[1] * 1000000 + time[2]
local now = math.floor(microseconds / 1000)  -- in ms
local DAY_MS = 86400000
