-- Cancel a job.
-- ARGV: 1 the job's key, 2 the signal for its process.
-- Returns whether the job was 'pending' or 'running'; nil when it was neither.
local key = ARGV[1]
local record = read(key)
if not record or record.state == 'finished' then
    return nil
end
changed()
if record.state == 'running' then
    record.signal = ARGV[2]
    write(key, record)
    return 'running'
end
finish(key, record, 'cancelled', {reason = 'cancelled', result = 'cancelled'})
return 'pending'
