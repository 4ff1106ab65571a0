-- Claims titles of a site, but for those that another worker was faster to claim. Returns what is to be known of each.
-- site; titles: ids; worker; now; until: when the claim ends.
WITH free AS (
    SELECT title_id FROM title_sites
    WHERE site = %(site)s AND title_id = ANY (%(titles)s) AND site_id IS NOT NULL
        AND (claimed_until IS NULL OR claimed_until <= %(now)s)
    FOR UPDATE SKIP LOCKED
), taken AS (
    UPDATE title_sites s SET claimed_by = %(worker)s, claimed_until = %(until)s, claims = claims + 1
    FROM free f WHERE s.title_id = f.title_id AND s.site = %(site)s
    RETURNING s.*
)
SELECT s.title_id, s.site_id, s.id_source, s.id_verified, s.claims, s.boost_due <= %(now)s AS boosted
FROM taken s
