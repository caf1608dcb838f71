-- Both for SQLite and for Postgres. Times are milliseconds since 1970 in UTC. `BLOB` is `BYTEA` in Postgres.
-- `by key`: SQLite keeps the rows in the order of their key, instead of an index beside them.
CREATE TABLE target (
    name TEXT PRIMARY KEY,
    -- `config` or `api`.
    source TEXT NOT NULL,
    -- What the API was given, sealed; empty for targets of the configuration file.
    definition BLOB NOT NULL,
    -- What it shares with others when that fails: `host:port`, or `local`.
    host TEXT NOT NULL,
    every BIGINT NOT NULL,
    tags TEXT NOT NULL,
    public BIGINT NOT NULL,
    -- `state::TargetState` as JSON; the two columns behind it say the same for queries.
    state TEXT NOT NULL,
    availability TEXT NOT NULL,
    surface TEXT NOT NULL,
    -- The hash of the contract that it has now.
    contract TEXT,
    last_slot BIGINT NOT NULL DEFAULT 0,
    last_result BIGINT NOT NULL DEFAULT 0,
    muted_until BIGINT NOT NULL DEFAULT 0,
    since BIGINT NOT NULL,
    created BIGINT NOT NULL DEFAULT 0,
    removed BIGINT
);
CREATE INDEX target_by_host ON target (host, availability);

-- One row for each target and region: when it is probed next, and who does it.
CREATE TABLE schedule (
    target TEXT NOT NULL,
    region TEXT NOT NULL,
    -- The scheduled time that the next result belongs to.
    slot BIGINT NOT NULL,
    -- 0 for the scheduled probe, then 1 and 2 for those that confirm its failure.
    attempt BIGINT NOT NULL DEFAULT 0,
    due BIGINT NOT NULL,
    -- How long a lease is, since a probe takes its time.
    patience BIGINT NOT NULL DEFAULT 60000,
    lease_until BIGINT NOT NULL DEFAULT 0,
    worker TEXT NOT NULL DEFAULT '',
    -- Grows with each lease: who has an older one may no longer write.
    epoch BIGINT NOT NULL DEFAULT 0,
    PRIMARY KEY (target, region)
) /* by key */;
CREATE INDEX schedule_by_due ON schedule (region, due);

CREATE TABLE result (
    target TEXT NOT NULL,
    slot BIGINT NOT NULL,
    region TEXT NOT NULL,
    attempt BIGINT NOT NULL,
    -- When the probe began.
    at BIGINT NOT NULL,
    -- `up`, `warning`, `down`, `inconclusive`.
    verdict TEXT NOT NULL,
    -- The code of the diagnostic that decided; empty if all is well.
    reason TEXT NOT NULL DEFAULT '',
    -- Microseconds.
    duration BIGINT NOT NULL,
    -- Microseconds by phase, as JSON; unreached phases are missing.
    phases TEXT NOT NULL,
    contract TEXT,
    -- The key of the report and the transcript in `evidence`.
    evidence TEXT,
    PRIMARY KEY (target, slot, region, attempt)
) /* by day */ /* by key */;

-- The report and the transcript of a probe that failed, or that saw something new: JSON, deflated.
CREATE TABLE evidence (
    id TEXT PRIMARY KEY,
    target TEXT NOT NULL,
    at BIGINT NOT NULL,
    body BLOB NOT NULL
);
CREATE INDEX evidence_by_age ON evidence (at);

CREATE TABLE rollup (
    target TEXT NOT NULL,
    -- Milliseconds: 5 minutes, an hour, a day.
    width BIGINT NOT NULL,
    start BIGINT NOT NULL,
    good BIGINT NOT NULL,
    bad BIGINT NOT NULL,
    inconclusive BIGINT NOT NULL,
    -- Slots without any result.
    missed BIGINT NOT NULL,
    -- Of the durations of good probes; mergeable.
    histogram BLOB NOT NULL,
    PRIMARY KEY (target, width, start)
);

-- Each version of a contract once: JSON, deflated.
CREATE TABLE contract (
    target TEXT NOT NULL,
    hash TEXT NOT NULL,
    first_seen BIGINT NOT NULL,
    body BLOB NOT NULL,
    PRIMARY KEY (target, hash)
);

CREATE TABLE contract_change (
    id TEXT PRIMARY KEY,
    target TEXT NOT NULL,
    at BIGINT NOT NULL,
    old_hash TEXT NOT NULL,
    new_hash TEXT NOT NULL,
    -- `breaking`, `security`, `compatible`, `cosmetic`, `mixed-fleet`.
    level TEXT NOT NULL,
    -- Whether a deploy marker had announced it.
    announced BIGINT NOT NULL,
    -- `ContractDiff` as JSON, deflated.
    diff BLOB NOT NULL
);
CREATE INDEX contract_change_by_target ON contract_change (target, at);

CREATE TABLE incident (
    -- UUID, version 7.
    id TEXT PRIMARY KEY,
    -- A target, or for a storm `host:NAME` or `region:NAME`.
    subject TEXT NOT NULL,
    class TEXT NOT NULL,
    severity TEXT NOT NULL,
    title TEXT NOT NULL,
    -- Where in the conversation it failed, since when, and what to do: JSON.
    detail TEXT NOT NULL,
    -- When the first sign of it was seen.
    since BIGINT NOT NULL,
    opened BIGINT NOT NULL,
    resolved BIGINT,
    acknowledged BIGINT,
    acknowledged_by TEXT,
    -- The storm that it is a part of: nobody is told of it alone.
    parent TEXT,
    evidence TEXT
);
CREATE UNIQUE INDEX incident_open ON incident (subject, class) WHERE resolved IS NULL;
CREATE INDEX incident_by_opened ON incident (opened);

CREATE TABLE incident_event (
    incident TEXT NOT NULL,
    at BIGINT NOT NULL,
    -- `opened`, `escalated`, `sent`, `failed-over`, `reminded`, `acknowledged`, `resolved`, …
    kind TEXT NOT NULL,
    text TEXT NOT NULL
);
CREATE INDEX incident_event_by_incident ON incident_event (incident, at);

-- What people are to be told. Written together with the change of state that it tells of.
CREATE TABLE outbox (
    -- UUID, version 7: in the order in which they were written.
    id TEXT PRIMARY KEY,
    incident TEXT NOT NULL,
    -- `trigger`, `update`, `reminder`, `acknowledge`, `resolve`, `repeat`.
    kind TEXT NOT NULL,
    -- The names of channels in their order, as a JSON array.
    route TEXT NOT NULL,
    -- Which of them is next.
    hop BIGINT NOT NULL DEFAULT 0,
    created BIGINT NOT NULL,
    due BIGINT NOT NULL,
    lease_until BIGINT NOT NULL DEFAULT 0,
    epoch BIGINT NOT NULL DEFAULT 0,
    attempts BIGINT NOT NULL DEFAULT 0,
    -- Since when the channel of this hop has been tried.
    tried_since BIGINT,
    delivered BIGINT,
    -- Nobody, if it was given up.
    delivered_by TEXT,
    last_error TEXT,
    -- The rest of a mail that some of its recipients have: the addresses of those who do not, as a JSON array.
    recipients TEXT,
    -- The SHA-256 of where the channel led that took it, or of where the first of the route led when it was told: it may have another name
    -- by now.
    destination TEXT
);
CREATE INDEX outbox_open ON outbox (due) WHERE delivered IS NULL;
-- Sent again and again while their incident is open; they count as delivered.
CREATE INDEX outbox_repeating ON outbox (due) WHERE kind = 'repeat';
CREATE INDEX outbox_by_incident ON outbox (incident);

-- Until when a change of the contract is no surprise.
CREATE TABLE deploy (
    id TEXT PRIMARY KEY,
    target TEXT NOT NULL,
    at BIGINT NOT NULL,
    until BIGINT NOT NULL,
    -- The hash that is expected, if it is known.
    expected TEXT,
    note TEXT NOT NULL
);

-- Planned work that was announced over the API.
CREATE TABLE maintenance (
    id TEXT PRIMARY KEY,
    name TEXT NOT NULL,
    -- JSON arrays.
    targets TEXT NOT NULL,
    tags TEXT NOT NULL,
    starts BIGINT NOT NULL,
    ends BIGINT NOT NULL
);

CREATE TABLE api_token (
    name TEXT PRIMARY KEY,
    -- SHA-256.
    hash TEXT NOT NULL,
    -- `viewer`, `operator` or `admin`.
    role TEXT NOT NULL,
    created BIGINT NOT NULL
);

-- Logins that were left before their time: the SHA-256 of the cookie, and when it would have ended by itself.
CREATE TABLE ended_login (
    hash TEXT PRIMARY KEY,
    until BIGINT NOT NULL
);

-- What people did. A row is written before it is done.
CREATE TABLE audit (
    -- UUID, version 7.
    id TEXT PRIMARY KEY,
    at BIGINT NOT NULL,
    who TEXT NOT NULL,
    -- How they were recognized: `login`, `token`, `proxy`, `local`, `command line`, `pagerduty`, `slack`.
    via TEXT NOT NULL,
    action TEXT NOT NULL,
    subject TEXT NOT NULL,
    -- What came of it; nothing if nobody knows.
    outcome TEXT
);
CREATE INDEX audit_by_time ON audit (at);

-- Of these targets nobody is told for some time.
CREATE TABLE silence (
    -- UUID, version 7.
    id TEXT PRIMARY KEY,
    -- JSON arrays of patterns with `*` and `?`.
    names TEXT NOT NULL,
    tags TEXT NOT NULL,
    author TEXT NOT NULL,
    reason TEXT NOT NULL,
    starts BIGINT NOT NULL,
    ends BIGINT NOT NULL
);

-- What operators tell the readers of the status page.
CREATE TABLE notice (
    -- UUID, version 7.
    id TEXT PRIMARY KEY,
    title TEXT NOT NULL,
    -- A JSON array of names.
    targets TEXT NOT NULL,
    -- Of the latest update.
    updated BIGINT NOT NULL,
    resolved BIGINT
);

CREATE TABLE notice_update (
    notice TEXT NOT NULL,
    -- Counted from 0.
    number BIGINT NOT NULL,
    at BIGINT NOT NULL,
    author TEXT NOT NULL,
    -- `investigating`, `identified`, `monitoring`, `resolved`, `information`.
    progress TEXT NOT NULL,
    text TEXT NOT NULL,
    PRIMARY KEY (notice, number)
);

-- Who is told what the status page says.
CREATE TABLE subscription (
    -- UUID, version 7.
    id TEXT PRIMARY KEY,
    -- `mail`, `webhook`.
    medium TEXT NOT NULL,
    address TEXT NOT NULL,
    -- A JSON array of names; empty for all.
    targets TEXT NOT NULL,
    -- Sealed; signs what a webhook is sent.
    secret BLOB NOT NULL,
    created BIGINT NOT NULL,
    -- When somebody asked for it last.
    asked BIGINT NOT NULL,
    confirmed BIGINT,
    -- Messages in a row that were given up.
    failures BIGINT NOT NULL DEFAULT 0,
    UNIQUE (medium, address)
);

CREATE TABLE subscription_token (
    -- The SHA-256 of what stands in a link.
    hash TEXT PRIMARY KEY,
    subscription TEXT NOT NULL,
    -- `confirm`, `unsubscribe`.
    purpose TEXT NOT NULL,
    created BIGINT NOT NULL
);
CREATE INDEX subscription_token_by_subscription ON subscription_token (subscription);

-- News for which messages were written.
CREATE TABLE subscription_news (
    id TEXT PRIMARY KEY,
    at BIGINT NOT NULL
);

CREATE TABLE subscription_message (
    id TEXT PRIMARY KEY,
    subscription TEXT NOT NULL,
    -- `question`, `reminder`, `news`.
    kind TEXT NOT NULL,
    -- JSON.
    content TEXT NOT NULL,
    created BIGINT NOT NULL,
    due BIGINT NOT NULL,
    lease_until BIGINT NOT NULL DEFAULT 0,
    epoch BIGINT NOT NULL DEFAULT 0,
    attempts BIGINT NOT NULL DEFAULT 0,
    delivered BIGINT,
    last_error TEXT
);
CREATE INDEX subscription_message_waiting ON subscription_message (due) WHERE delivered IS NULL;
CREATE INDEX subscription_message_by_subscription ON subscription_message (subscription, id);

-- When a job reported in last.
CREATE TABLE push (
    target TEXT PRIMARY KEY,
    started BIGINT,
    succeeded BIGINT,
    failed BIGINT,
    -- What it said with that.
    message TEXT NOT NULL
);

-- What services have told us, so that nobody tells it again.
CREATE TABLE taken_call (
    -- The SHA-256 of the service's own id of it, or of its signature.
    id TEXT PRIMARY KEY,
    at BIGINT NOT NULL
);

-- The processes that share the database, with the targets that the file of each names, as JSON.
CREATE TABLE monitor_process (
    name TEXT PRIMARY KEY,
    -- When it was heard of last.
    seen BIGINT NOT NULL,
    targets TEXT NOT NULL,
    -- Why it goes on with an earlier version of its file, if it does.
    rejected TEXT
);

-- What one process does for all of them: rollups, retention, the search for the blind, the heartbeat.
CREATE TABLE chore (
    name TEXT PRIMARY KEY,
    holder TEXT NOT NULL DEFAULT '',
    lease_until BIGINT NOT NULL DEFAULT 0,
    last_run BIGINT NOT NULL DEFAULT 0
);
