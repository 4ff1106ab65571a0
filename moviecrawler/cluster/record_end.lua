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
if not record or record.queue_member ~= member or record.state == 'finished'
    or owner and owner ~= node or not owner and not is_over then
    return 0
end
if is_over then
    -- It may have been queued again while this node could not reach Redis.
    if not owner then
        run(key, record, node)
    end
    finish(key, record, how, outcome)
else
    give_back(key, record, how, outcome)
end
changed()
return 1
