-- Writes how tries ended, and ends the claims. rows: JSON array of title_sites, by title and site.
UPDATE title_sites s
SET state = n.state, last_success = n.last_success, next_due = n.next_due, failures = n.failures,
    boost_due = n.boost_due, boost = CASE WHEN n.keeps_boost AND n.boost_due IS NOT NULL THEN s.boost ELSE 0 END,
    claimed_by = CASE WHEN n.keeps_claim THEN s.claimed_by END,
    claimed_until = CASE WHEN n.keeps_claim THEN s.claimed_until END,
    claims = CASE WHEN n.keeps_claim THEN s.claims ELSE 0 END
FROM jsonb_to_recordset(%(rows)s) AS n (title_id bigint, site site, state site_state, last_success timestamptz,
    next_due timestamptz, failures integer, boost_due timestamptz, keeps_boost boolean, keeps_claim boolean)
WHERE s.title_id = n.title_id AND s.site = n.site
