-- Writes how tries ended, and ends the claims. rows: JSON array of title_sites, by title and site.
UPDATE title_sites s
SET state = n.state, last_success = n.last_success, next_due = n.next_due, failures = n.failures,
    boost_due = n.boost_due, boost = CASE WHEN n.boost_due IS NULL THEN 0 ELSE s.boost END,
    claimed_by = NULL, claimed_until = NULL, claims = 0
FROM jsonb_to_recordset(%(rows)s) AS n (title_id bigint, site site, state site_state, last_success timestamptz,
    next_due timestamptz, failures integer, boost_due timestamptz)
WHERE s.title_id = n.title_id AND s.site = n.site
