-- Record how a node's job ended.
-- ARGV:
--   1  the node's id
--   2  the job's member of PENDING
--   3  how its process ended, a `RunEnd`
--   4  JSON of its `Outcome`
--   5  its `JobStatus` as the node took it
-- Returns 1; 0 when another node has the job now, or the job was queued anew under its id.
local node = ARGV[1]
local member = ARGV[2]
local key = key_of(member)
local how = ARGV[3]
local outcome = cjson.decode(ARGV[4])
local owner = redis.call('HGET', RUNNING, key)
local record = read(key)
if not record and owner == node then
    record = cjson.decode(ARGV[5])  -- Redis has lost it
end
local is_over = how == 'finished' or how == 'cancelled'
local is_same = record and record.queue_member == member and record.state ~= 'finished'
local is_own = owner == node
-- It may have been queued again while this node could not reach Redis.
local was_queued_again = not owner and is_over
if not is_same or not (is_own or was_queued_again) then
    return 0
end
if is_over then
    if was_queued_again then
        run(key, record, node)
    end
    finish(key, record, how, outcome)
else
    give_back(key, record, how, outcome)
end
changed()
return 1
