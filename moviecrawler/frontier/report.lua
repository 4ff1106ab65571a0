-- What is read of sites and runs, and the deletion of a run.

-- Return the `SiteState` of a site.
local function read_site(site)
    local of_site = keys_of(site, '')
    local circuit = redis.call('HMGET', of_site.circuit, 'reason', 'until', 'at')
    local charged = redis.call('HMGET', of_site.budget, 'day', 'used')
    local state = {site = site, refusal = circuit[1] or nil, used_today = 0}
    if circuit[2] then
        state.stopped_until = tonumber(circuit[2]) / 1000
    end
    if circuit[3] then
        state.refused_at = tonumber(circuit[3]) / 1000
    end
    -- Its day is a later one when a clock was ahead.
    if (tonumber(charged[1]) or -1) >= math.floor(now / DAY_MS) then
        state.used_today = tonumber(charged[2])
    end
    return state
end

-- Return the `RunReport` of a run; nothing when there is none.
local function read_run(site, run)
    local of_run = keys_of(site, run)
    local state = redis.call('HMGET', of_run.state, 'arguments', 'started_at', 'over_at')
    local is_there = redis.call('EXISTS', of_run.state) == 1
    local dead_letters = redis.call('HLEN', of_run.dead)
    local requeued = redis.call('HLEN', of_run.requeued)
    if not is_there and dead_letters + requeued == 0 then
        return nil
    end
    -- A run of which only letters are left began and ended now.
    local over_at = tonumber(state[3]) or (not is_there and now)
    return {
        site = site,
        run = run,
        arguments = state[1] or '',
        account = read_account(of_run.state, count_open(of_run)),
        dead_letters = dead_letters,
        requeued = requeued,
        workers = redis.call('ZCOUNT', of_run.workers, now, '+inf'),
        started_at = (tonumber(state[2]) or now) / 1000,
        ended_at = over_at and over_at / 1000 or nil,
        now = now / 1000,
    }
end

-- given.known  sites
-- Return a `FrontierReport`.
function steps.read()
    local sites = {}
    local is_known = {}
    for _, names in ipairs({given.known, redis.call('SMEMBERS', SITES)}) do
        for _, site in ipairs(names) do
            if not is_known[site] then
                is_known[site] = true
                sites[#sites + 1] = site
            end
        end
    end
    local states = {}
    local runs = {}
    for _, site in ipairs(sites) do
        states[site] = read_site(site)
        local names = {}
        if not given.site or given.site == site then
            local last = given.run and -1 or given.terms.most_runs - 1
            names = redis.call('ZREVRANGE', keys_of(site, '').runs, 0, last)
        end
        for _, name in ipairs(names) do
            if not given.run or given.run == name then
                runs[#runs + 1] = read_run(site, name)
            end
        end
    end
    return {now = now / 1000, sites = states, runs = list(runs)}
end

-- Return the ids of requests that are open, and of those that died lately.
function steps.ids()
    local open = redis.call('HKEYS', keys.requests)
    for _, id in ipairs(redis.call('ZRANGE', keys.leases, 0, -1)) do
        open[#open + 1] = id
    end
    local died = {}
    local letters = redis.call('HGETALL', keys.dead)
    for position = 1, #letters, 2 do
        if (died_at(letters[position + 1]) or 0) >= now - given.terms.died_seconds * 1000 then
            died[#died + 1] = letters[position]
        end
    end
    return {open = list(open), died = list(died)}
end

function steps.leave()
    redis.call('ZREM', keys.workers, given.worker_name)
    return true
end

-- Delete all keys of a run but its dead letters.
function steps.drop_run()
    local deleted = redis.call('UNLINK', keys.requeued)
    for _, name in ipairs(OF_PASS) do
        deleted = deleted + redis.call('UNLINK', keys[name])
    end
    redis.call('HDEL', keys.left, given.run)
    return deleted > 0
end
