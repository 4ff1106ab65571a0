-- The privileges that the database user lacks for storing movies; null when none. Without this check, the first batch would show it.
SELECT CASE
    WHEN current_setting('transaction_read_only') = 'on' THEN 'write: it is read-only, as a standby is'
    ELSE (
        SELECT string_agg(lower(n.name) || ' ' || n.on_what, ', ' ORDER BY n.on_what, n.name)
        FROM (
            SELECT t.name AS on_what, r.name, has_table_privilege(t.name, r.name) AS is_granted
            FROM unnest('{titles,records,scores,score_history,people,credits,misses,title_sites,offers}'::text[]) AS t (name)
            CROSS JOIN unnest('{SELECT,INSERT,UPDATE,DELETE}'::text[]) AS r (name)
            UNION ALL SELECT 'imdb_episodes', 'SELECT', has_table_privilege('imdb_episodes', 'SELECT')
            UNION ALL SELECT s.name, 'USAGE', has_sequence_privilege(s.name, 'USAGE, UPDATE')  -- one of the two
            FROM unnest('{records_record_id_seq,titles_title_id_seq}'::text[]) AS s (name)
        ) n
        WHERE NOT n.is_granted)
END
