-- Handle one time of a schedule, once for the whole cluster: queue its job, or skip it. It follows common.lua and a function
-- `put` made of put.lua.
-- KEYS: as in common.lua, and the schedule's own (see keys.py).
-- ARGV: 1 to 6 as in put.lua; 7 the field of the schedule's times, 8 the time that was handled last, 9 the one to handle
-- now; 10 '1' to queue the job, '0' to skip it.
-- Returns 'fired', 'passed', 'busy' (skipped, as the last job is not over), 'full' (too many jobs are pending: try again),
-- or 'done' (another node was first).
local schedule, job = KEYS[#KEYS], ARGV[1]
if redis.call('HGET', schedule, ARGV[7]) ~= ARGV[8] then
    return 'done'
end
local what = 'passed'
if ARGV[10] == '1' then
    local last = redis.call('HGET', schedule, 'job')
    if last and redis.call('HEXISTS', JOBS, last) == 1 then
        what = 'busy'
    elseif put() < 0 then
        return 'full'
    else
        what = 'fired'
        redis.call('HSET', schedule, 'job', job)
    end
end
redis.call('HSET', schedule, ARGV[7], ARGV[9])
return what
