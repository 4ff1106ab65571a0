-- Restore a job that a node runs and Redis has lost.
-- ARGV: 1 the node's id, 2 the job's key, 3 its JSON, 4 minus its priority.
local key = ARGV[2]
if redis.call('HEXISTS', JOBS, key) == 0 then
    redis.call('HSET', JOBS, key, ARGV[3])
    redis.call('HSET', PLACES, key, place_of(key))
    started(key, ARGV[1])
    redis.call('HSET', RUNNING, key, cjson.encode({node = ARGV[1], score = ARGV[4], at = now_ms()}))
end
