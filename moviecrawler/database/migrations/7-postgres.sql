-- Version 7: an offer of single seasons of a series is marked as such.

ALTER TABLE offers ADD scope text;
ALTER TABLE ended_offers ADD scope text;
