-- Every script begins with this: its arguments, and the time by Redis' clock, which is the only one that decides anything.
local given = cmsgpack.unpack(ARGV[1])
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
