-- Every script begins with this: its arguments, and the time in ms by Redis' clock, the only one that leases and budgets go by.
local given = cmsgpack.unpack(ARGV[1])
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
