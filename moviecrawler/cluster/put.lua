-- Queue a job, once. Returns what `queue` of common.lua does.
-- ARGV: 1 the job's key, 2 its JSON, 3 minus its priority, 4 the limit of pending jobs, 5 the channel of events.
return queue(unpack(ARGV))
