-- Version 8: titles are matched by other rules, at the end of the next crawl.
UPDATE state SET written = written + 1;
