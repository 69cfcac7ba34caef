-- The name of this fleet in hubs: two fleets on one hub number their orders alike.
CREATE TABLE fleet (
    is_only boolean PRIMARY KEY DEFAULT true CHECK (is_only),
    name text NOT NULL DEFAULT left(replace(gen_random_uuid()::text, '-', ''), 12)
);
INSERT INTO fleet DEFAULT VALUES;

-- Only tenants with something to lease have a turn, so that the others cost a lease nothing.
CREATE TABLE in_line (tenant text PRIMARY KEY REFERENCES tenants, turn bigint NOT NULL DEFAULT nextval('turns'));
CREATE INDEX in_line_turn ON in_line (turn);
ALTER TABLE tenants DROP COLUMN turn;

-- Orders are long, and their rows change with each state.
CREATE TABLE contents (sha256 text PRIMARY KEY, content text NOT NULL);
INSERT INTO contents SELECT DISTINCT ON (content_sha256) content_sha256, content FROM orders;

-- A beat changes nothing that is indexed, and finds room on its own page.
CREATE TABLE leases (
    order_id bigint PRIMARY KEY REFERENCES orders,
    epoch integer NOT NULL,
    token uuid NOT NULL UNIQUE,
    worker text NOT NULL,
    -- Where its result goes in the hub.
    reference text NOT NULL,
    began_at timestamptz NOT NULL DEFAULT now(),
    until timestamptz NOT NULL
) WITH (fillfactor = 50);

DROP INDEX orders_lapse, orders_queue, orders_token;
ALTER TABLE orders DROP CONSTRAINT orders_check;
INSERT INTO leases (order_id, epoch, token, worker, reference, began_at, until)
SELECT id, epoch, token, coalesce(worker, ''), 'refs/fleet/' || id || '/' || epoch, coalesce(leased_at, now()), lease_until
FROM orders WHERE state = 'leased';
ALTER TABLE orders
    DROP COLUMN content,
    DROP COLUMN lease_until,
    DROP COLUMN leased_at,
    ADD COLUMN reference text,
    -- Why it may not be leased although it is queued: 'backoff', 'paused' or 'budget', until `ready_at`.
    ADD COLUMN parked text CHECK (parked IN ('backoff', 'paused', 'budget')),
    -- Why its lease got no answer, if the fleet refused it: 'over-budget', 'held' (by calls under way) or 'paused'.
    ADD COLUMN refused text CHECK (refused IN ('over-budget', 'held', 'paused')),
    -- A train: these orders' results, one upon the other, which land together. Null for an order.
    ADD COLUMN members bigint[],
    ADD FOREIGN KEY (content_sha256) REFERENCES contents,
    DROP CONSTRAINT orders_tenant_content_sha256_base_key;
UPDATE orders SET reference = 'refs/fleet/' || id || '/' || epoch WHERE commit IS NOT NULL;
UPDATE orders SET refused = 'over-budget' WHERE over_budget;
ALTER TABLE orders DROP COLUMN over_budget;
-- Workers of the older version push to other names.
UPDATE orders SET record = 2 WHERE state IN ('waiting', 'queued', 'leased') AND record < 2;

CREATE UNIQUE INDEX orders_same ON orders (tenant, content_sha256, base, repo, model, coalesce(land, ''))
    WHERE members IS NULL;
CREATE INDEX orders_queue ON orders (tenant, priority DESC, lost, id) WHERE state = 'queued' AND parked IS NULL;
-- For monitors. A lease does not ask for a record above 0, so its planner cannot mistake this for its own index.
CREATE INDEX orders_oldest ON orders (ready_at) WHERE state = 'queued' AND parked IS NULL AND record > 0;
CREATE INDEX orders_parked ON orders (ready_at) WHERE state = 'queued' AND parked IS NOT NULL;
-- The token of the lease that gave the verdict, for a worker that repeats it.
CREATE UNIQUE INDEX orders_token ON orders (token) WHERE token IS NOT NULL;

-- What nobody leases for now: by a person without end, or for a while because a service is out of order.
CREATE TABLE pauses (
    kind text NOT NULL CHECK (kind IN ('tenant', 'repo', 'model')),
    name text NOT NULL,
    until timestamptz NOT NULL DEFAULT 'infinity',
    reason text NOT NULL,
    -- Whether the orders that were queued before it are parked.
    is_applied boolean NOT NULL DEFAULT false,
    PRIMARY KEY (kind, name)
);

CREATE FUNCTION paused_until(p_tenant text, p_repo text, p_model text) RETURNS timestamptz LANGUAGE sql STABLE AS $$
    SELECT max(until) FROM pauses WHERE until > now()
      AND ((kind, name) = ('tenant', p_tenant) OR (kind, name) = ('repo', p_repo) OR (kind, name) = ('model', p_model))
$$;

-- Whatever queues an order comes through here: it is parked, or its tenant has a turn.
CREATE FUNCTION line_up() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    paused timestamptz := paused_until(NEW.tenant, NEW.repo, NEW.model);
BEGIN
    IF paused IS NOT NULL THEN
        NEW.parked := 'paused';
        NEW.ready_at := greatest(NEW.ready_at, paused);
    ELSIF NEW.ready_at > now() THEN
        NEW.parked := CASE NEW.refused WHEN 'held' THEN 'budget' ELSE 'backoff' END;
    ELSE
        NEW.parked := NULL;
        INSERT INTO in_line (tenant) VALUES (NEW.tenant) ON CONFLICT DO NOTHING;
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER line_up BEFORE INSERT OR UPDATE ON orders FOR EACH ROW WHEN (NEW.state = 'queued') EXECUTE FUNCTION line_up();
UPDATE orders SET ready_at = ready_at WHERE state = 'queued';

-- How many orders are in which state, and how often one was lost, as changes that are summed up now and then: nobody counts years
-- of history, and no two transitions wait for each other.
CREATE TABLE tallies (what text NOT NULL, change bigint NOT NULL);
INSERT INTO tallies SELECT state, count(*) FROM orders GROUP BY 1 UNION ALL SELECT 'lost', coalesce(sum(lost), 0) FROM orders;
CREATE FUNCTION tally() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'INSERT' THEN
        INSERT INTO tallies VALUES (NEW.state, 1);
    ELSE
        IF NEW.state <> OLD.state THEN
            INSERT INTO tallies VALUES (OLD.state, -1), (NEW.state, 1);
        END IF;
        IF NEW.lost > OLD.lost THEN
            INSERT INTO tallies VALUES ('lost', NEW.lost - OLD.lost);
        END IF;
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER tally_new AFTER INSERT ON orders FOR EACH ROW WHEN (NEW.members IS NULL) EXECUTE FUNCTION tally();
CREATE TRIGGER tally_change AFTER UPDATE OF state, lost ON orders FOR EACH ROW WHEN (NEW.members IS NULL) EXECUTE FUNCTION tally();

-- Events by month, so that a month that nobody needs goes at once.
ALTER TABLE events RENAME TO events_before;
ALTER INDEX events_order RENAME TO events_before_order;
CREATE SEQUENCE events_id;
SELECT setval('events_id', coalesce(max(id), 0) + 1) FROM events_before;
CREATE TABLE events (
    id bigint NOT NULL DEFAULT nextval('events_id'),
    at timestamptz NOT NULL DEFAULT now(),
    order_id bigint NOT NULL,
    epoch integer NOT NULL,
    event text NOT NULL,
    detail text
) PARTITION BY RANGE (at);
CREATE INDEX events_order ON events (order_id);
CREATE TABLE events_default PARTITION OF events DEFAULT;
CREATE FUNCTION month_of_events(p_at timestamptz) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    month timestamptz := date_trunc('month', p_at AT TIME ZONE 'UTC') AT TIME ZONE 'UTC';
    name text := 'events_' || to_char(p_at AT TIME ZONE 'UTC', 'YYYY_MM');
BEGIN
    IF to_regclass(name) IS NULL THEN
        EXECUTE format('CREATE TABLE %I PARTITION OF events FOR VALUES FROM (%L) TO (%L)', name, month, month + interval '1 month');
    END IF;
END $$;
SELECT month_of_events(month) FROM generate_series(
    (SELECT date_trunc('month', least(min(at), now())) FROM events_before), now() + interval '1 month', interval '1 month') AS month;
INSERT INTO events SELECT id, at, order_id, epoch, event, detail FROM events_before;
DROP TABLE events_before;

-- A model whose service fails again and again is left alone for a while.
ALTER TABLE pace ADD COLUMN failures integer NOT NULL DEFAULT 0;

-- Workers that have asked, for people who look after them.
CREATE TABLE workers (
    name text PRIMARY KEY,
    version text NOT NULL,
    seen_at timestamptz NOT NULL DEFAULT now(),
    is_draining boolean NOT NULL DEFAULT false
) WITH (fillfactor = 50);

-- Who may ask the gateway for what. Only hashes of tokens are kept.
CREATE TABLE tokens (
    sha256 text PRIMARY KEY,
    name text NOT NULL UNIQUE,
    role text NOT NULL CHECK (role IN ('worker', 'viewer', 'submitter', 'operator')),
    -- Null: all tenants.
    tenant text,
    made_at timestamptz NOT NULL DEFAULT now(),
    revoked_at timestamptz
);

-- Asks whether a call may be made, and holds the most that it can cost. Locks in the order lease, caps, order: as everything that
-- takes more than one of them does.
CREATE FUNCTION reserve(
    p_token uuid, p_request text, p_model text, p_most bigint, p_interval float8, p_gateway bigint, p_patience float8,
    p_longest_wait float8,
    OUT word text, OUT call bigint, OUT kept_type text, OUT kept bytea, OUT wait float8, OUT short text, OUT rest bigint
) LANGUAGE plpgsql AS $$
DECLARE
    the_order record;
    budget record;
    found_state text;
    free timestamptz;
    scopes text[] := '{}';
BEGIN
    -- Calls of one order wait for each other here, so that no two of them can be opened for one request.
    SELECT l.order_id AS id, l.epoch, o.tenant, o.batch, o.model, o.refused INTO the_order
    FROM leases l JOIN orders o ON o.id = l.order_id WHERE l.token = p_token FOR NO KEY UPDATE OF l;
    IF NOT FOUND THEN
        word := 'gone';
        RETURN;
    END IF;
    -- Whoever asks is alive, even if the database was away for so long that no gateway has beaten.
    SELECT c.state, c.content_type, c.answer INTO found_state, kept_type, kept
    FROM calls c JOIN gateways g ON g.id = c.gateway
    WHERE c.order_id = the_order.id AND c.request_sha256 = p_request
      AND (c.state = 'answered' OR c.state = 'open'
        AND (g.id = p_gateway OR g.beat_at > now() - make_interval(secs => p_patience)))
    ORDER BY c.state = 'answered' DESC LIMIT 1;
    IF FOUND THEN
        word := CASE found_state WHEN 'answered' THEN 'kept' ELSE 'in-flight' END;
        RETURN;
    END IF;
    SELECT free_at INTO free FROM pace WHERE model = p_model AND free_at > clock_timestamp();
    IF NOT FOUND AND p_interval IS NOT NULL THEN
        -- Only a pace has a row that calls of different orders wait for.
        INSERT INTO pace (model, free_at) VALUES (p_model, clock_timestamp() + make_interval(secs => p_interval))
        ON CONFLICT (model) DO UPDATE SET free_at = excluded.free_at WHERE pace.free_at <= clock_timestamp();
        IF NOT FOUND THEN
            SELECT free_at INTO free FROM pace WHERE model = p_model;
        END IF;
    END IF;
    IF free IS NOT NULL THEN
        word := 'wait';
        wait := greatest(extract(epoch FROM free - clock_timestamp()), 0);
        IF wait > p_longest_wait THEN
            INSERT INTO pauses (kind, name, until, reason) VALUES ('model', the_order.model, free, 'its service keeps failing or asked us to wait')
            ON CONFLICT (kind, name) DO UPDATE SET until = greatest(pauses.until, excluded.until);
            UPDATE orders SET refused = 'paused' WHERE id = the_order.id;
        END IF;
        RETURN;
    END IF;
    -- Setting a cap has this lock alone: from here on no cap begins that this reservation does not see.
    PERFORM pg_advisory_xact_lock_shared(7310440);
    FOR budget IN
        SELECT * FROM budgets
        WHERE scope IN ('fleet', 'tenant:' || the_order.tenant, 'batch:' || the_order.tenant || '/' || the_order.batch)
        ORDER BY scope FOR UPDATE
    LOOP
        rest := budget.cap - budget.spent;
        short := budget.scope;
        word := CASE
            WHEN p_most IS NULL OR p_most > rest THEN 'over-budget'
            WHEN p_most > rest - budget.held THEN 'held'
        END;
        IF word IS NOT NULL THEN
            -- The program asks again and again; one event is enough.
            IF the_order.refused IS DISTINCT FROM word THEN
                UPDATE orders SET refused = word WHERE id = the_order.id;
                INSERT INTO events (order_id, epoch, event, detail) VALUES (the_order.id, the_order.epoch, word, short);
            END IF;
            RETURN;
        END IF;
        scopes := scopes || budget.scope;
    END LOOP;
    UPDATE budgets b SET held = b.held + coalesce(p_most, 0) WHERE scope = ANY(scopes);
    INSERT INTO calls (order_id, epoch, gateway, request_sha256, model, state, scopes, reserved)
    VALUES (the_order.id, the_order.epoch, p_gateway, p_request, p_model, 'open', scopes, coalesce(p_most, 0)) RETURNING id INTO call;
    IF the_order.refused IS NOT NULL THEN
        UPDATE orders SET refused = NULL WHERE id = the_order.id;
    END IF;
    word := 'open';
END $$;

-- How a call ended: answer and cost at once. The lease need not hold any more, and the reservation may have been given up.
CREATE FUNCTION settle(
    p_call bigint, p_state text, p_cost bigint, p_input bigint, p_output bigint, p_type text, p_answer bytea, p_is_fault boolean,
    p_faults integer, p_rest float8
) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    the_call calls%ROWTYPE;
    becomes text := p_state;
    counted bigint;
    in_a_row integer;
BEGIN
    SELECT * INTO the_call FROM calls WHERE id = p_call AND calls.state IN ('open', 'unknown') FOR UPDATE;
    IF NOT FOUND THEN
        RETURN;
    END IF;
    PERFORM 1 FROM budgets WHERE scope = ANY(the_call.scopes) ORDER BY scope FOR UPDATE;
    IF becomes = 'answered' THEN
        -- Two answers of one request come one after the other: the second one was paid for, too, and is listed.
        PERFORM 1 FROM orders WHERE id = the_call.order_id FOR NO KEY UPDATE;
        IF EXISTS (SELECT 1 FROM calls c WHERE c.order_id = the_call.order_id AND c.request_sha256 = the_call.request_sha256
            AND c.state = 'answered') THEN
            becomes := 'again';
        END IF;
    END IF;
    UPDATE calls SET state = becomes, cost = p_cost, input_tokens = p_input, output_tokens = p_output,
        content_type = CASE becomes WHEN 'answered' THEN p_type END,
        answer = CASE becomes WHEN 'answered' THEN p_answer END, ended_at = now()
    WHERE id = p_call;
    counted := CASE becomes WHEN 'failed' THEN 0 ELSE coalesce(p_cost, the_call.reserved) END;
    UPDATE budgets b SET
        held = b.held - CASE the_call.state WHEN 'open' THEN the_call.reserved ELSE 0 END,
        spent = b.spent + counted - CASE the_call.state WHEN 'open' THEN 0 ELSE the_call.reserved END
    WHERE scope = ANY(the_call.scopes);
    IF p_is_fault THEN
        INSERT INTO pace (model, failures) VALUES (the_call.model, 1)
        ON CONFLICT (model) DO UPDATE SET failures = pace.failures + 1 RETURNING failures INTO in_a_row;
        IF in_a_row >= p_faults THEN
            UPDATE pace SET free_at = greatest(free_at, now() + make_interval(secs => p_rest * 2 ^ least(in_a_row - p_faults, 5)))
            WHERE model = the_call.model;
        END IF;
    ELSIF becomes NOT IN ('failed', 'unknown') THEN
        UPDATE pace SET failures = 0 WHERE model = the_call.model AND failures > 0;
    END IF;
    PERFORM pg_notify('fleet_queued', '');
END $$;

-- A verdict, once. True if it holds, also for a worker that repeats it.
CREATE FUNCTION finish(
    p_token uuid, p_state text, p_reason text, p_commit text, p_bundle text, p_elapsed bigint, p_attempts integer, p_backoff float8,
    p_faults integer
) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    the_lease leases%ROWTYPE;
    the_order orders%ROWTYPE;
    becomes text := p_state;
    is_attempt boolean := false;
    ready timestamptz := now();
    why text := p_reason;
    closed timestamptz;
BEGIN
    DELETE FROM leases WHERE token = p_token RETURNING * INTO the_lease;
    IF NOT FOUND THEN
        RETURN EXISTS (SELECT 1 FROM orders WHERE token = p_token);
    END IF;
    SELECT * INTO the_order FROM orders WHERE id = the_lease.order_id FOR UPDATE;
    IF becomes = 'stopped' AND the_order.refused IS DISTINCT FROM 'over-budget' THEN
        -- A service that is out of order is not the order's fault, nor is money that others hold for a while.
        SELECT max(p.free_at) INTO closed FROM calls c JOIN pace p ON p.model = c.model
        WHERE c.order_id = the_order.id AND c.epoch = the_lease.epoch AND p.failures >= p_faults;
        is_attempt := the_order.refused IS NULL AND closed IS NULL;
        IF NOT is_attempt OR the_order.attempts + 1 < p_attempts THEN
            becomes := 'queued';
            ready := greatest(closed, now() + make_interval(secs => p_backoff * 2 ^ least(the_order.attempts, 6)));
            why := CASE the_order.refused WHEN 'held' THEN 'waits for money that other calls hold' ELSE p_reason END;
        END IF;
    END IF;
    UPDATE orders SET state = becomes, ready_at = ready, reason = why, commit = p_commit, bundle = p_bundle,
        elapsed_ms = p_elapsed, attempts = attempts + is_attempt::integer, reference = the_lease.reference,
        token = CASE becomes WHEN 'queued' THEN NULL ELSE p_token END,
        ended_at = CASE becomes WHEN 'queued' THEN NULL ELSE now() END
    WHERE id = the_order.id;
    INSERT INTO events (order_id, epoch, event, detail)
    VALUES (the_order.id, the_lease.epoch, becomes, coalesce(why, p_commit));
    IF becomes = 'passed' AND the_order.land IS NULL THEN
        PERFORM begin_after(the_order.id, p_commit);
    END IF;
    RETURN true;
END $$;

-- Lets those begin that wait for an order, on what it left.
CREATE FUNCTION begin_after(p_order bigint, p_commit text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    UPDATE orders SET state = 'queued', onto = p_commit, ready_at = now() WHERE after = p_order AND state = 'waiting';
    IF FOUND THEN
        PERFORM pg_notify('fleet_queued', '');
    END IF;
END $$;
