-- The sessions that hold the lock of `lock_titles`, in words. The lock's number is in two halves.
-- Without the first statement a transaction would see all sessions as they once were.
SELECT pg_stat_clear_snapshot();
SELECT format(
    'the session %s of %s (%s), in a transaction since %s s,',
    a.pid,
    coalesce(nullif(a.application_name, ''), 'an unnamed program'),
    coalesce(host(a.client_addr), 'this machine'),
    round(extract(epoch FROM clock_timestamp() - a.xact_start)))
FROM pg_locks l
JOIN pg_stat_activity a ON a.pid = l.pid
WHERE l.granted AND l.objsubid = 1
    AND (l.classid::bigint << 32) | l.objid::bigint = 7303170117561344001
    AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
