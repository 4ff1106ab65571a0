-- One row per record, with its scores, amounts of money, and the names of its makers.
CREATE VIEW movies AS
SELECT r.*,
    {people},
    {scores},
    {amounts}
FROM records r
{joins}
