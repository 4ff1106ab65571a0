-- Handle one time of a schedule, once for the whole cluster: queue its job, or skip it.
-- KEYS: as in common.lua, and the schedule's own (see keys.py).
-- ARGV: 1 to 5 as in put.lua; 6 the field of the schedule's times, 7 the time that was handled last, 8 the one to handle
-- now; 9 '1' to queue the job, '0' to skip it.
-- Returns 'fired', 'passed', 'busy' (skipped, as the last job is not over), 'full' (too many jobs are pending: try again),
-- or 'done' (another node was first).
local schedule, job = KEYS[#KEYS], ARGV[1]
if redis.call('HGET', schedule, ARGV[6]) ~= ARGV[7] then
    return 'done'
end
local what = 'passed'
if ARGV[9] == '1' then
    local last = redis.call('HGET', schedule, 'job')
    if last and redis.call('HEXISTS', JOBS, last) == 1 then
        what = 'busy'
    elseif redis.call('HEXISTS', RESULTS, job) == 0 and queue(unpack(ARGV, 1, 5)) < 0 then
        return 'full'
    else
        what = 'fired'
        redis.call('HSET', schedule, 'job', job)
    end
end
redis.call('HSET', schedule, ARGV[6], ARGV[8])
return what
