-- What a database user who is to store movies may not do; null when nothing is missing. Without a right on some table nothing could be
-- stored, and that would only be known from the first batch.
SELECT CASE
    WHEN current_setting('transaction_read_only') = 'on' THEN 'write: it is read-only, as a standby is'
    ELSE (
        SELECT string_agg(lower(n.name) || ' ' || n.on_table, ', ' ORDER BY n.on_table, n.name)
        FROM (
            SELECT t.name AS on_table, r.name
            FROM unnest('{titles,records,scores,score_history,amounts,genres,record_genres,people,credits,misses,title_sites,
                unjoined,offers,finer_scores,finer_score_history}'::text[]) AS t (name)
            CROSS JOIN unnest('{SELECT,INSERT,UPDATE,DELETE}'::text[]) AS r (name)
            UNION ALL SELECT 'imdb_episodes', 'SELECT'
        ) n
        WHERE NOT has_table_privilege(n.on_table, n.name))
END
