-- Tenants take turns: the one that has waited longest is served first.
CREATE SEQUENCE turns;

CREATE TABLE tenants (
    name text PRIMARY KEY,
    turn bigint NOT NULL DEFAULT nextval('turns')
);
CREATE INDEX tenants_turn ON tenants (turn);

-- Bundles and other results, by their content.
CREATE TABLE artifacts (
    sha256 text PRIMARY KEY,
    content bytea NOT NULL,
    stored_at timestamptz NOT NULL DEFAULT now()
);
-- They are compressed already.
ALTER TABLE artifacts ALTER COLUMN content SET STORAGE EXTERNAL;

CREATE TABLE orders (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tenant text NOT NULL REFERENCES tenants,
    batch text,
    repo text NOT NULL,
    -- The commit that it was submitted for, and the one that it is carried out on: they differ once the branch has moved.
    base text NOT NULL,
    onto text NOT NULL,
    content text NOT NULL,
    content_sha256 text NOT NULL,
    model text NOT NULL,
    priority integer NOT NULL DEFAULT 0,
    after bigint REFERENCES orders,
    land text,
    -- The record that its worker has to know at least.
    record integer NOT NULL,
    state text NOT NULL CHECK (state IN
        ('waiting', 'queued', 'leased', 'passed', 'landed', 'failed', 'stopped', 'dead', 'cancelled')),
    reason text,
    epoch integer NOT NULL DEFAULT 0,
    token uuid,
    worker text,
    lease_until timestamptz,
    lost integer NOT NULL DEFAULT 0,
    attempts integer NOT NULL DEFAULT 0,
    over_budget boolean NOT NULL DEFAULT false,
    ready_at timestamptz NOT NULL DEFAULT now(),
    submitted_at timestamptz NOT NULL DEFAULT now(),
    leased_at timestamptz,
    ended_at timestamptz,
    elapsed_ms bigint,
    commit text,
    bundle text REFERENCES artifacts,
    UNIQUE (tenant, content_sha256, base),
    CHECK (state <> 'leased' OR (token IS NOT NULL AND lease_until IS NOT NULL)),
    CHECK (state NOT IN ('passed', 'landed') OR commit IS NOT NULL)
);
-- The head of each tenant's queue is one probe of this index, however long the queue is.
CREATE INDEX orders_queue ON orders (tenant, priority DESC, lost, id) WHERE state = 'queued';
CREATE INDEX orders_lapse ON orders (lease_until) WHERE state = 'leased';
CREATE INDEX orders_land ON orders (repo, land, id) WHERE state = 'passed' AND land IS NOT NULL;
CREATE INDEX orders_after ON orders (after) WHERE state = 'waiting';
CREATE UNIQUE INDEX orders_token ON orders (token) WHERE token IS NOT NULL;

CREATE TABLE gateways (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    beat_at timestamptz NOT NULL DEFAULT now()
);

-- Only scopes with a cap have a row, so that others share no lock. Money is in billionths of a US dollar.
CREATE TABLE budgets (
    scope text PRIMARY KEY,
    cap bigint NOT NULL CHECK (cap >= 0),
    held bigint NOT NULL DEFAULT 0 CHECK (held >= 0),
    spent bigint NOT NULL DEFAULT 0
);

CREATE TABLE calls (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    order_id bigint NOT NULL REFERENCES orders,
    epoch integer NOT NULL,
    gateway bigint NOT NULL REFERENCES gateways,
    -- Of path and body.
    request_sha256 text NOT NULL,
    model text NOT NULL,
    -- open: money is reserved. answered: kept. again: answered when an answer was kept already, paid twice.
    -- wasted: paid, but of no use (any more). failed: not charged. unknown: nobody knows, so the reservation counts as spent.
    state text NOT NULL CHECK (state IN ('open', 'answered', 'again', 'wasted', 'failed', 'unknown')),
    scopes text[] NOT NULL,
    reserved bigint NOT NULL,
    cost bigint,
    input_tokens bigint,
    output_tokens bigint,
    content_type text,
    answer bytea,
    began_at timestamptz NOT NULL DEFAULT now(),
    ended_at timestamptz
);
CREATE UNIQUE INDEX calls_kept ON calls (order_id, request_sha256) WHERE state = 'answered';
CREATE INDEX calls_open ON calls (gateway) WHERE state = 'open';
CREATE INDEX calls_order ON calls (order_id);

-- One pace for each model, shared by all gateways: nobody calls it before this time.
CREATE TABLE pace (
    model text PRIMARY KEY,
    free_at timestamptz NOT NULL DEFAULT '-infinity'
);

CREATE TABLE events (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at timestamptz NOT NULL DEFAULT now(),
    order_id bigint NOT NULL REFERENCES orders,
    epoch integer NOT NULL,
    event text NOT NULL,
    detail text
);
CREATE INDEX events_order ON events (order_id);
