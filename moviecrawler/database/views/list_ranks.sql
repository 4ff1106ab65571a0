-- The rank of each title in each list. A pass over a list that was not read to its end replaces
-- only the ranks that it covers; the others are those of the pass before.
CREATE VIEW list_ranks AS
SELECT site, list_name, rank, site_id, pass_at, computed
FROM (
    SELECT e.site, e.list_name, e.rank, e.site_id, e.pass_at, l.computed,
        row_number() OVER (
            PARTITION BY e.site, e.list_name, e.site_id ORDER BY e.pass_at DESC, e.rank
        ) AS nth
    FROM list_entries e
    JOIN lists l ON l.site = e.site AND l.list_name = e.list_name AND e.pass_at <= l.pass_at
) ranked
WHERE nth = 1
