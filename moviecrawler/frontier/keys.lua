-- The beginning of the only script, which takes one step of the contract: its arguments, the time,
-- and every key of the frontier.
--
-- The keys are no KEYS, as a step that reads finds out which there are: Redis Cluster is not
-- supported. All keys of a site share the hash tag `{site}`. After it comes the version of the
-- layout.

local given = cmsgpack.unpack(ARGV[1])
-- The time by Redis' clock, the only one that leases and budgets go by.
local time = redis.call('TIME')
local microseconds = time[1] * 1000000 + time[2]
local now = math.floor(microseconds / 1000)  -- in ms
local DAY_MS = 86400000
local UNUSED_MS = given.terms.unused_seconds * 1000
local DEAD_MS = given.terms.letter_seconds * 1000
local LAYOUT = 2
local steps = {}

-- SET of the sites that have had runs: a worker may have a site that others lack. It never expires.
local SITES = 'sites:' .. LAYOUT

-- The keys of a pass, which expire 7 days after their last use. Each id in `requests` is also in
-- `queue` or in `leases`.
local OF_PASS = {
    -- HASH of the run's figures: `arguments`; the fields of `Account` but `open`; `started_at` and
    -- `over_at` of the pass, and `counted_from`, from when on its account counts dead letters (ms);
    -- `was_lost`, until a worker is told that it was; `cursor` of the search for requests that
    -- `queue` or `leases` has lost.
    'state',
    -- ZSET of requests that wait: id → level, and when it was queued (µs).
    'queue',
    -- ZSET of leased requests: id → when the lease ends (ms), unless the worker renews it.
    'leases',
    -- HASH of all requests that are queued or leased:
    -- id → `<level> <deliveries> <t for a title's, or ->\n<JSON, or a seed as it was pushed>`.
    'requests',
    -- The dedupe set of the pass: a SET of ids, or a Bloom filter's bits in a STRING.
    'seen',
    -- SET of the ids of the requested titles, when the run has a limit.
    'titles',
    -- ZSET: worker → until when it counts as alive (ms), unless a heartbeat renews that.
    'workers',
}
local OF_LETTERS = {
    -- HASH of dead letters: id → `<JSON of reason and at (ms)>\n<value of requests>`. Each is kept
    -- for 30 days, whatever becomes of the run.
    'dead',
    -- HASH of the dead letters that wait for the next pass, as in `dead`.
    'requeued',
}
local OF_SITE = {
    -- ZSET: name of a run → when it was last used (ms). A name is forgotten after 60 days.
    'runs',
    -- HASH: name of a run → how many requests were open when it was last used.
    'left',
    -- STRING: how this Redis is called where it must not be taken for another. It never expires.
    'place',
    -- HASH: `next`, when the next request may be sent, and `at`, when the last one was charged
    -- (ms); `day`, and how many requests it has `used`. It expires in 2 days.
    'budget',
    -- HASH, when the site is blocking us: `reason`, `until` (ms), `trips`, and after that
    -- `probe_until` (ms): until when others wait for the response to the probe; `at`, when one of
    -- them was written (ms). It is deleted when the site answers, and expires two weeks after
    -- `until`.
    'circuit',
}

local function keys_of(site, run)
    local tag = '{' .. site .. '}:'
    -- HASH of a proxy's key → JSON of its ban by a site. It expires 30 days after the last change,
    -- when no ban counts any more.
    local keys = {bans = tag .. 'proxies'}
    for _, name in ipairs(OF_SITE) do
        keys[name] = tag .. LAYOUT .. ':' .. name
    end
    for _, names in ipairs({OF_PASS, OF_LETTERS}) do
        for _, name in ipairs(names) do
            keys[name] = tag .. LAYOUT .. ':' .. run .. ':' .. name
        end
    end
    return keys
end

local keys = keys_of(given.site or '', given.run or '')
-- LIST, SET or ZSET of seeds that users push: an id, a URL, or JSON with `url`. It never expires.
keys.start_urls = given.start_urls

-- A list for JSON, where an empty one would become an object.
local function list(items)
    return #items > 0 and items or nil
end
