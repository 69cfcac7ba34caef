-- Amounts are nanodollars.

CREATE SEQUENCE token_numbers;

-- Every scope has a row, with a cap or without one, so that money spent before there was a cap counts too.
CREATE TABLE budgets (
    scope text PRIMARY KEY,
    cap bigint CHECK (cap >= 0),
    -- Reserved by calls that are under way.
    held bigint NOT NULL DEFAULT 0 CHECK (held >= 0),
    -- Paid, or unknown and therefore counted in full.
    spent bigint NOT NULL DEFAULT 0 CHECK (spent >= 0)
);
INSERT INTO budgets (scope) VALUES ('all');

CREATE TABLE batches (
    name text PRIMARY KEY,
    tenant text NOT NULL,
    made_at timestamptz NOT NULL DEFAULT now()
);

CREATE TABLE workers (
    name text PRIMARY KEY,
    sha256 bytea NOT NULL UNIQUE,
    batch text NOT NULL REFERENCES batches,
    expires_at timestamptz NOT NULL,
    revoked_at timestamptz
);

CREATE TABLE orders (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    batch text NOT NULL REFERENCES batches,
    name text NOT NULL,
    content_sha256 text NOT NULL,
    -- The commit of the first attempt; all others begin there, too.
    base text NOT NULL,
    attempts integer NOT NULL DEFAULT 0,
    -- The newest attempt's; null once it has given up.
    token_number bigint,
    token_sha256 bytea UNIQUE,
    worker text REFERENCES workers,
    began_at timestamptz,
    -- Why the last attempt had no verdict.
    note text,
    verdict text CHECK (verdict IN ('passed', 'failed')),
    reason text,
    commit text,
    reference text,
    bundle text,
    finished_at timestamptz,
    UNIQUE (batch, name)
);

CREATE TABLE bundles (
    order_id bigint PRIMARY KEY REFERENCES orders,
    sha256 text NOT NULL,
    content bytea NOT NULL
);

CREATE TABLE calls (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    order_id bigint NOT NULL REFERENCES orders,
    token_number bigint NOT NULL,
    -- Of path and body.
    request_sha256 bytea NOT NULL,
    model text NOT NULL,
    -- answered: kept; wasted: of no use, so not kept; failed: not billed; unknown: broken off; again: answered before.
    state text NOT NULL CHECK (state IN ('open', 'answered', 'wasted', 'failed', 'unknown', 'again')),
    reserved bigint NOT NULL,
    -- Null where the price or the usage is unknown; the reservation counts then.
    cost bigint,
    input_tokens bigint,
    output_tokens bigint,
    content_type text,
    answer bytea,
    began_at timestamptz NOT NULL DEFAULT now(),
    ended_at timestamptz
);
CREATE UNIQUE INDEX calls_answered ON calls (order_id, request_sha256) WHERE state = 'answered';
CREATE INDEX calls_open ON calls (order_id, request_sha256) WHERE state = 'open';
CREATE INDEX calls_order ON calls (order_id);

-- The database that the account belongs to: this row, as the transaction that is named in it wrote it. A restored backup is another
-- one, also where it is restored in place, and so is a standby that was promoted.
CREATE TABLE origin (identity text NOT NULL);

CREATE FUNCTION identity(p_written xid) RETURNS text LANGUAGE sql STABLE AS $$
    SELECT concat_ws('/', (SELECT system_identifier FROM pg_control_system()), left(pg_walfile_name(pg_current_wal_lsn()), 8),
        (SELECT oid FROM pg_database WHERE datname = current_database()), p_written)
$$;
INSERT INTO origin VALUES (identity(pg_current_xact_id()::xid));

CREATE FUNCTION is_restored() RETURNS boolean LANGUAGE sql STABLE AS $$
    SELECT NOT EXISTS (SELECT 1 FROM origin o WHERE o.identity = identity(o.xmin))
$$;

-- Always in this order, so that no two transactions wait for each other. In PL/pgSQL, as all that a call runs: it keeps its plans.
CREATE FUNCTION scopes_of(p_order bigint) RETURNS text[] LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN (SELECT ARRAY['all', 'batch:' || b.name, 'tenant:' || b.tenant]
        FROM orders o JOIN batches b ON b.name = o.batch WHERE o.id = p_order);
END $$;

CREATE FUNCTION count_money(p_order bigint, p_held bigint, p_spent bigint) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    scopes text[] := scopes_of(p_order);
BEGIN
    PERFORM 1 FROM budgets WHERE scope = ANY(scopes) ORDER BY scope FOR UPDATE;
    -- A recount may have said less than what a call gives back.
    UPDATE budgets SET held = held + p_held, spent = greatest(spent + p_spent, 0) WHERE scope = ANY(scopes);
END $$;

-- Gives calls up that nobody makes any more: of one request, or all. Whether they were billed is unknown, so they count in full.
CREATE FUNCTION give_up_calls(p_order bigint, p_request bytea) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    the_call record;
    given_up bigint := 0;
BEGIN
    FOR the_call IN
        UPDATE calls SET state = 'unknown', ended_at = now()
        WHERE state = 'open' AND (p_order IS NULL OR order_id = p_order AND request_sha256 = p_request)
        RETURNING order_id, reserved
    LOOP
        PERFORM count_money(the_call.order_id, -the_call.reserved, the_call.reserved);
        given_up := given_up + 1;
    END LOOP;
    RETURN given_up;
END $$;

-- The order whose newest token this is. Beginning it again waits for whoever has asked.
CREATE FUNCTION holder(p_token bytea) RETURNS SETOF orders LANGUAGE plpgsql AS $$
BEGIN
    RETURN QUERY SELECT o.* FROM orders o JOIN workers w ON w.name = o.worker
        WHERE o.token_sha256 = p_token AND o.verdict IS NULL AND w.revoked_at IS NULL AND w.expires_at > now()
        FOR SHARE OF o;
END $$;

-- The answer that is kept, or whether a call may be made, which holds the most that it can cost. The caller is alone with this
-- request of this order, so an open call of it is one that nobody makes any more.
CREATE FUNCTION reserve(
    p_token bytea, p_request bytea, p_model text, p_most bigint,
    OUT word text, OUT call bigint, OUT kept_type text, OUT kept bytea, OUT short text, OUT rest bigint
) LANGUAGE plpgsql AS $$
DECLARE
    the_order orders%ROWTYPE;
    scopes text[];
    budget budgets%ROWTYPE;
BEGIN
    SELECT * INTO the_order FROM holder(p_token);
    IF NOT FOUND THEN
        word := 'void';
        RETURN;
    END IF;
    SELECT content_type, answer INTO kept_type, kept FROM calls
    WHERE order_id = the_order.id AND request_sha256 = p_request AND answer IS NOT NULL;
    IF FOUND THEN
        word := 'kept';
        RETURN;
    END IF;
    IF EXISTS (SELECT 1 FROM calls WHERE order_id = the_order.id AND request_sha256 = p_request AND state = 'open') THEN
        PERFORM give_up_calls(the_order.id, p_request);
    END IF;
    scopes := scopes_of(the_order.id);
    FOR budget IN SELECT * FROM budgets WHERE scope = ANY(scopes) ORDER BY scope FOR UPDATE LOOP
        CONTINUE WHEN budget.cap IS NULL;
        short := budget.scope;
        rest := budget.cap - budget.spent;
        IF p_most IS NULL OR p_most > rest THEN
            word := 'over-cap';
            RETURN;
        ELSIF p_most > rest - budget.held THEN
            word := 'held';
            RETURN;
        END IF;
    END LOOP;
    UPDATE budgets SET held = held + coalesce(p_most, 0) WHERE scope = ANY(scopes);
    INSERT INTO calls (order_id, token_number, request_sha256, model, state, reserved)
    VALUES (the_order.id, the_order.token_number, p_request, p_model, 'open', coalesce(p_most, 0)) RETURNING id INTO call;
    word := 'open';
END $$;

-- How a call ended: answer and cost at once. The token may be void, and the call given up: what was paid is kept. Repeating it
-- changes nothing.
CREATE FUNCTION settle(
    p_call bigint, p_state text, p_cost bigint, p_input bigint, p_output bigint, p_type text, p_answer bytea
) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    the_call calls%ROWTYPE;
    becomes text := p_state;
    counted bigint;
BEGIN
    SELECT * INTO the_call FROM calls WHERE id = p_call AND state IN ('open', 'unknown') FOR UPDATE;
    IF NOT FOUND THEN
        RETURN;
    END IF;
    counted := CASE p_state WHEN 'failed' THEN 0 ELSE coalesce(p_cost, the_call.reserved) END;
    IF the_call.state = 'open' THEN
        PERFORM count_money(the_call.order_id, -the_call.reserved, counted);
    ELSE
        PERFORM count_money(the_call.order_id, 0, counted - the_call.reserved);
    END IF;
    -- The locked budgets let one answer of an order follow the other; the second one was paid for, too, and is listed.
    IF becomes = 'answered' AND EXISTS (SELECT 1 FROM calls c WHERE c.order_id = the_call.order_id
        AND c.request_sha256 = the_call.request_sha256 AND c.state = 'answered') THEN
        becomes := 'again';
    END IF;
    UPDATE calls SET state = becomes, cost = p_cost, input_tokens = p_input, output_tokens = p_output, ended_at = now(),
        content_type = CASE becomes WHEN 'answered' THEN p_type END, answer = CASE becomes WHEN 'answered' THEN p_answer END
    WHERE id = p_call;
END $$;

-- Gives back what was reserved for a call that is not made, because nobody learned that it may be. The lock waits for a reservation
-- that is not over yet.
CREATE FUNCTION release(p_order bigint, p_request bytea) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM 1 FROM orders WHERE id = p_order FOR UPDATE;
    PERFORM settle(id, 'failed', NULL, NULL, NULL, NULL, NULL) FROM calls
    WHERE order_id = p_order AND request_sha256 = p_request AND state = 'open';
END $$;

-- What a scope has spent by the vendors' own lists; false if there is no such scope. In a restored database, `all` ends what cannot
-- be told from the backup: calls that were under way (the lists have them), attempts that may be void since, and the numbers of those
-- that began since. Nobody knows whose the missing money is, so every other scope is charged with it until it is counted itself.
CREATE FUNCTION recount(p_scope text, p_spent bigint) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    missing bigint;
BEGIN
    SELECT p_spent - spent INTO missing FROM budgets WHERE scope = p_scope FOR UPDATE;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    IF p_scope = 'all' AND is_restored() THEN
        UPDATE calls SET state = 'unknown', ended_at = now() WHERE state = 'open';
        UPDATE budgets SET held = 0, spent = spent + greatest(missing, 0);
        UPDATE orders SET token_sha256 = NULL WHERE verdict IS NULL;
        PERFORM setval('token_numbers', nextval('token_numbers') + 1000000);
        UPDATE origin SET identity = identity(pg_current_xact_id()::xid);
    END IF;
    UPDATE budgets SET spent = p_spent WHERE scope = p_scope;
    RETURN true;
END $$;

-- A new attempt of an order, which voids the token of the one before, unless the order has its result.
CREATE FUNCTION begin_order(
    p_worker bytea, p_batch text, p_name text, p_content text, p_base text, p_token bytea,
    OUT word text, OUT number bigint, OUT base text, OUT earlier text
) LANGUAGE plpgsql AS $$
DECLARE
    the_worker workers%ROWTYPE;
    the_order orders%ROWTYPE;
BEGIN
    SELECT * INTO the_worker FROM workers WHERE sha256 = p_worker AND revoked_at IS NULL AND expires_at > now();
    IF NOT FOUND THEN
        word := 'unknown-worker';
        RETURN;
    ELSIF p_batch <> the_worker.batch THEN
        word := 'other-batch';
        RETURN;
    END IF;
    INSERT INTO orders (batch, name, content_sha256, base) VALUES (the_worker.batch, p_name, p_content, p_base)
    ON CONFLICT (batch, name) DO NOTHING;
    SELECT * INTO the_order FROM orders o WHERE o.batch = the_worker.batch AND o.name = p_name FOR UPDATE;
    base := the_order.base;
    earlier := coalesce(the_order.note, '');
    IF the_order.content_sha256 <> p_content THEN
        word := 'other-content';
    ELSIF the_order.verdict IS NOT NULL THEN
        word := 'finished';
    ELSE
        word := 'begun';
        number := nextval('token_numbers');
        UPDATE orders SET attempts = attempts + 1, token_number = number, token_sha256 = p_token, worker = the_worker.name,
            began_at = now(), note = NULL
        WHERE id = the_order.id;
    END IF;
END $$;

-- The one result of an order, or why an attempt has none. False if the token is void; true for a worker that repeats itself.
CREATE FUNCTION finish_order(
    p_worker bytea, p_token bytea, p_verdict text, p_reason text, p_commit text, p_bundle text
) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    the_order orders%ROWTYPE;
BEGIN
    SELECT o.* INTO the_order FROM orders o JOIN workers w ON w.batch = o.batch
    WHERE o.token_sha256 = p_token AND w.sha256 = p_worker AND w.revoked_at IS NULL AND w.expires_at > now() FOR UPDATE OF o;
    IF NOT FOUND THEN
        RETURN false;
    ELSIF the_order.verdict IS NOT NULL THEN
        RETURN p_verdict IS NOT NULL;
    ELSIF p_verdict IS NULL THEN
        UPDATE orders SET note = p_reason, token_sha256 = NULL WHERE id = the_order.id;
    ELSE
        UPDATE orders SET verdict = p_verdict, reason = p_reason, commit = p_commit, finished_at = now(),
            reference = CASE WHEN p_commit IS NOT NULL THEN 'refs/code-commit/' || name || '/' || token_number END,
            bundle = (SELECT b.sha256 FROM bundles b WHERE b.order_id = id AND b.sha256 = p_bundle)
        WHERE id = the_order.id;
    END IF;
    RETURN true;
END $$;
