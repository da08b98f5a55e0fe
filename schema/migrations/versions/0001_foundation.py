"""The foundation: tenants, jobs, stage runs, the outbox, dead letters and their guards."""

from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

TABLES = (
    """
    CREATE TABLE tenant (
        id uuid PRIMARY KEY,
        name text NOT NULL UNIQUE,
        created_at timestamptz NOT NULL DEFAULT now()
    )
    """,
    """
    CREATE TABLE api_key (
        id uuid PRIMARY KEY,
        tenant_id uuid NOT NULL REFERENCES tenant,
        name text NOT NULL,
        key_hash bytea NOT NULL UNIQUE,
        created_at timestamptz NOT NULL DEFAULT now(),
        revoked_at timestamptz
    )
    """,
    """
    CREATE TABLE job (
        id uuid PRIMARY KEY,
        tenant_id uuid NOT NULL REFERENCES tenant,
        kind text NOT NULL CHECK (kind IN ('text', 'summary', 'invoice', 'contract')),
        state text NOT NULL DEFAULT 'accepted' CONSTRAINT job_state_check CHECK (state IN (
            'accepted', 'validating', 'extracting', 'normalizing', 'persisting',
            'completed', 'failed', 'cancelled')),
        current_stage text NOT NULL DEFAULT 'validate'
            CHECK (current_stage IN ('validate', 'extract', 'normalize', 'persist')),
        options jsonb NOT NULL DEFAULT '{}',
        client_tag text,
        traceparent text,
        warnings jsonb NOT NULL DEFAULT '[]',
        error jsonb,
        event_sequence bigint NOT NULL DEFAULT 0,
        deadline interval NOT NULL,
        retention interval NOT NULL,
        created_at timestamptz NOT NULL DEFAULT now(),
        updated_at timestamptz NOT NULL DEFAULT now(),
        deadline_at timestamptz NOT NULL,
        finished_at timestamptz,
        expires_at timestamptz NOT NULL,
        deleted_at timestamptz,
        CONSTRAINT job_finished_check
            CHECK ((state IN ('completed', 'failed', 'cancelled')) = (finished_at IS NOT NULL)),
        CONSTRAINT job_error_check CHECK ((state = 'failed') = (error IS NOT NULL))
    ) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02)
    """,
    """
    CREATE TABLE document (
        job_id uuid PRIMARY KEY REFERENCES job ON DELETE CASCADE,
        sha256 text NOT NULL,
        size_bytes bigint NOT NULL CHECK (size_bytes > 0),
        declared_type text,
        media_type text NOT NULL,
        storage_key text NOT NULL,
        content bytea CHECK (octet_length(content) = size_bytes),
        created_at timestamptz NOT NULL DEFAULT now()
    )
    """,
    """
    CREATE TABLE worker (
        id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        stages text NOT NULL,
        liveness text NOT NULL DEFAULT 'lease' CHECK (liveness IN ('lock', 'lease')),
        started_at timestamptz NOT NULL DEFAULT now(),
        stopped_at timestamptz
    )
    """,
    """
    CREATE TABLE stage_run (
        job_id uuid NOT NULL REFERENCES job ON DELETE CASCADE,
        stage text NOT NULL CHECK (stage IN ('validate', 'extract', 'normalize', 'persist')),
        status text NOT NULL DEFAULT 'ready' CONSTRAINT stage_run_status_check CHECK (status IN (
            'ready', 'running', 'retrying', 'done', 'failed', 'cancelled')),
        lane text NOT NULL CHECK (split_part(lane, '.', 1) = stage),
        series integer NOT NULL DEFAULT 1 CHECK (series >= 1),
        attempt integer NOT NULL DEFAULT 1 CHECK (attempt >= 1),
        lost integer NOT NULL DEFAULT 0 CHECK (lost >= 0),
        fencing_token bigint NOT NULL DEFAULT 0,
        worker_id integer,
        claimed_at timestamptz,
        lease_expires_at timestamptz,
        next_attempt_at timestamptz,
        issued_at timestamptz NOT NULL DEFAULT now(),
        issues integer NOT NULL DEFAULT 1,
        deferred_event uuid,
        reissued_series integer NOT NULL DEFAULT 0,
        pages_done integer NOT NULL DEFAULT 0,
        pages_total integer,
        PRIMARY KEY (job_id, stage),
        CONSTRAINT stage_run_owner_check CHECK (
            (status = 'running') = (worker_id IS NOT NULL)
            AND (status = 'running') = (lease_expires_at IS NOT NULL)
            AND (status = 'running') = (claimed_at IS NOT NULL)),
        CONSTRAINT stage_run_due_check CHECK ((status = 'retrying') = (next_attempt_at IS NOT NULL))
    ) WITH (fillfactor = 60, autovacuum_vacuum_scale_factor = 0.02)
    """,
    """
    CREATE TABLE stage_attempt (
        job_id uuid NOT NULL REFERENCES job ON DELETE CASCADE,
        stage text NOT NULL,
        fencing_token bigint NOT NULL,
        series integer NOT NULL,
        attempt integer NOT NULL,
        worker_id integer NOT NULL,
        began_at timestamptz NOT NULL DEFAULT now(),
        ended_at timestamptz,
        outcome text CHECK (outcome IN (
            'completed', 'transient', 'permanent', 'unknown', 'cancelled', 'worker_lost', 'released',
            'deadline')),
        code text,
        exception_type text,
        PRIMARY KEY (job_id, stage, fencing_token),
        CHECK ((ended_at IS NULL) = (outcome IS NULL))
    ) WITH (fillfactor = 80)
    """,
    """
    CREATE TABLE stage_output (
        job_id uuid NOT NULL REFERENCES job ON DELETE CASCADE,
        stage text NOT NULL,
        fencing_token bigint NOT NULL,
        content jsonb,
        blob_key text,
        sha256 text NOT NULL,
        size_bytes bigint NOT NULL,
        created_at timestamptz NOT NULL DEFAULT now(),
        PRIMARY KEY (job_id, stage),
        CHECK ((content IS NULL) <> (blob_key IS NULL))
    )
    """,
    """
    CREATE TABLE page_text (
        job_id uuid NOT NULL REFERENCES job ON DELETE CASCADE,
        page integer NOT NULL CHECK (page >= 1),
        fencing_token bigint NOT NULL,
        content jsonb NOT NULL,
        created_at timestamptz NOT NULL DEFAULT now(),
        PRIMARY KEY (job_id, page)
    )
    """,
    """
    CREATE TABLE result (
        job_id uuid PRIMARY KEY REFERENCES job ON DELETE CASCADE,
        content jsonb,
        blob_key text,
        sha256 text NOT NULL,
        size_bytes bigint NOT NULL,
        created_at timestamptz NOT NULL DEFAULT now(),
        CHECK ((content IS NULL) <> (blob_key IS NULL))
    )
    """,
    """
    CREATE TABLE outbox_event (
        id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        event_id uuid NOT NULL,
        kind text NOT NULL CHECK (kind IN ('stage', 'dead_letter', 'notice')),
        tenant_id uuid,
        job_id uuid,
        lane text,
        payload jsonb NOT NULL,
        not_before timestamptz,
        deferrals integer NOT NULL DEFAULT 0,
        traceparent text,
        created_at timestamptz NOT NULL DEFAULT now(),
        available_at timestamptz NOT NULL DEFAULT now(),
        attempts integer NOT NULL DEFAULT 0,
        last_error text
    ) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 500,
            autovacuum_vacuum_cost_delay = 0)
    """,
    """
    CREATE TABLE dead_letter (
        id uuid PRIMARY KEY,
        job_id uuid REFERENCES job ON DELETE CASCADE,
        tenant_id uuid,
        stage text,
        series integer NOT NULL DEFAULT 1,
        reason text NOT NULL CHECK (reason IN (
            'retries_exhausted', 'unknown_exhausted', 'worker_lost', 'delivery_limit',
            'unreadable', 'unknown_version')),
        code text NOT NULL,
        owner text NOT NULL DEFAULT 'operator',
        state text NOT NULL DEFAULT 'open' CONSTRAINT dead_letter_state_check CHECK (state IN (
            'open', 'redriven', 'discarded', 'expired')),
        attempts integer NOT NULL DEFAULT 0,
        body_sha256 bytea,
        body_bytes integer,
        queue text,
        seen integer NOT NULL DEFAULT 1,
        history jsonb NOT NULL DEFAULT '[]',
        created_at timestamptz NOT NULL DEFAULT now(),
        closed_at timestamptz,
        CHECK ((state = 'open') = (closed_at IS NULL)),
        CHECK (job_id IS NOT NULL OR body_sha256 IS NOT NULL)
    )
    """,
    """
    CREATE TABLE job_event (
        job_id uuid NOT NULL REFERENCES job ON DELETE CASCADE,
        sequence bigint NOT NULL,
        at timestamptz NOT NULL DEFAULT now(),
        type text NOT NULL,
        stage text,
        data jsonb NOT NULL DEFAULT '{}',
        PRIMARY KEY (job_id, sequence)
    )
    """,
    """
    CREATE TABLE idempotency_key (
        tenant_id uuid NOT NULL REFERENCES tenant,
        key text NOT NULL CHECK (length(key) BETWEEN 1 AND 255),
        token bigint NOT NULL DEFAULT 1,
        lease_expires_at timestamptz NOT NULL,
        fingerprint text,
        job_id uuid,
        created_at timestamptz NOT NULL DEFAULT now(),
        expires_at timestamptz NOT NULL,
        PRIMARY KEY (tenant_id, key),
        CHECK ((job_id IS NULL) = (fingerprint IS NULL))
    )
    """,
    """
    CREATE TABLE webhook_endpoint (
        id uuid PRIMARY KEY,
        tenant_id uuid NOT NULL REFERENCES tenant,
        url text NOT NULL CHECK (length(url) BETWEEN 1 AND 2048),
        events text[] NOT NULL CONSTRAINT webhook_endpoint_events_check CHECK (
            cardinality(events) > 0 AND events <@ ARRAY['job.completed', 'job.failed', 'job.cancelled']),
        secret bytea NOT NULL,
        previous_secret bytea,
        previous_until timestamptz,
        created_at timestamptz NOT NULL DEFAULT now(),
        disabled_at timestamptz,
        disabled_reason text CHECK (disabled_reason IN ('owner', 'gone')),
        CHECK ((previous_secret IS NULL) = (previous_until IS NULL)),
        CHECK ((disabled_at IS NULL) = (disabled_reason IS NULL))
    )
    """,
    """
    CREATE TABLE webhook_delivery (
        endpoint_id uuid NOT NULL REFERENCES webhook_endpoint ON DELETE CASCADE,
        event_id uuid NOT NULL,
        job_id uuid NOT NULL REFERENCES job ON DELETE CASCADE,
        type text NOT NULL CHECK (type IN ('job.completed', 'job.failed', 'job.cancelled')),
        data jsonb NOT NULL,
        status text NOT NULL DEFAULT 'pending' CONSTRAINT webhook_delivery_status_check CHECK (status IN (
            'pending', 'delivered', 'failed')),
        series integer NOT NULL DEFAULT 1 CHECK (series >= 1),
        attempt integer NOT NULL DEFAULT 0 CHECK (attempt >= 0),
        next_attempt_at timestamptz DEFAULT now(),
        issues integer NOT NULL DEFAULT 1,
        issued_at timestamptz NOT NULL DEFAULT now(),
        history jsonb NOT NULL DEFAULT '[]',
        created_at timestamptz NOT NULL DEFAULT now(),
        delivered_at timestamptz,
        PRIMARY KEY (endpoint_id, event_id),
        CHECK ((status = 'pending') = (next_attempt_at IS NOT NULL)),
        CHECK ((status = 'delivered') = (delivered_at IS NOT NULL))
    ) WITH (fillfactor = 70)
    """,
)

INDEXES = (
    "CREATE INDEX job_by_tenant ON job (tenant_id, id DESC)",
    "CREATE INDEX job_by_tag ON job (tenant_id, client_tag, id DESC) WHERE client_tag IS NOT NULL",
    "CREATE INDEX job_unfinished ON job (tenant_id, id DESC) WHERE finished_at IS NULL",
    # By ``error``, which changes with a failure only: an index that names ``state`` would end every HOT update.
    "CREATE INDEX job_failed ON job (tenant_id, id DESC) WHERE error IS NOT NULL",
    "CREATE INDEX job_by_finish ON job (finished_at DESC) WHERE finished_at IS NOT NULL",
    "CREATE INDEX job_by_deadline ON job (deadline_at) WHERE finished_at IS NULL",
    "CREATE INDEX job_by_expiry ON job (expires_at) WHERE finished_at IS NOT NULL AND deleted_at IS NULL",
    "CREATE INDEX job_by_deletion ON job (deleted_at) WHERE deleted_at IS NOT NULL",
    "CREATE INDEX stage_run_ready ON stage_run (lane, issued_at) WHERE status = 'ready'",
    "CREATE INDEX stage_run_running ON stage_run (lease_expires_at) WHERE status = 'running'",
    "CREATE INDEX stage_run_retrying ON stage_run (next_attempt_at) WHERE status = 'retrying'",
    "CREATE INDEX outbox_event_due ON outbox_event (available_at, id)",
    "CREATE INDEX outbox_event_by_job ON outbox_event (job_id)",
    "CREATE UNIQUE INDEX dead_letter_by_run ON dead_letter (job_id, stage, series) WHERE job_id IS NOT NULL",
    "CREATE UNIQUE INDEX dead_letter_by_body ON dead_letter (body_sha256) WHERE body_sha256 IS NOT NULL",
    "CREATE INDEX dead_letter_open ON dead_letter (created_at, id) WHERE state = 'open'",
    "CREATE INDEX idempotency_key_by_expiry ON idempotency_key (expires_at)",
    "CREATE INDEX webhook_endpoint_by_tenant ON webhook_endpoint (tenant_id, id)",
    "CREATE INDEX webhook_delivery_by_job ON webhook_delivery (job_id)",
    "CREATE INDEX webhook_delivery_pending ON webhook_delivery (issued_at) WHERE status = 'pending'",
    "CREATE INDEX webhook_delivery_undelivered ON webhook_delivery (endpoint_id, event_id) WHERE status <> 'delivered'",
)

# The same moves as in schema.domain.states; a test holds the two together.
GUARDS = (
    """
    CREATE FUNCTION job_guard() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        IF OLD.state || '>' || NEW.state NOT IN (
            'accepted>validating', 'accepted>failed', 'accepted>cancelled',
            'validating>extracting', 'validating>failed', 'validating>cancelled',
            'extracting>normalizing', 'extracting>failed', 'extracting>cancelled',
            'normalizing>persisting', 'normalizing>failed', 'normalizing>cancelled',
            'persisting>completed', 'persisting>failed', 'persisting>cancelled',
            'failed>validating', 'failed>extracting', 'failed>normalizing', 'failed>persisting'
        ) THEN
            RAISE EXCEPTION 'illegal move of a job' USING ERRCODE = 'check_violation';
        END IF;
        RETURN NEW;
    END $$
    """,
    """
    CREATE TRIGGER job_guard BEFORE UPDATE OF state ON job FOR EACH ROW
    WHEN (OLD.state IS DISTINCT FROM NEW.state) EXECUTE FUNCTION job_guard()
    """,
    """
    CREATE FUNCTION stage_run_guard() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        IF NEW.fencing_token < OLD.fencing_token THEN
            RAISE EXCEPTION 'a fencing token never goes down' USING ERRCODE = 'check_violation';
        END IF;
        IF OLD.status <> NEW.status AND OLD.status || '>' || NEW.status NOT IN (
            'ready>running', 'ready>failed', 'ready>cancelled',
            'running>done', 'running>retrying', 'running>ready', 'running>failed', 'running>cancelled',
            'retrying>running', 'retrying>failed', 'retrying>cancelled',
            'failed>ready'
        ) THEN
            RAISE EXCEPTION 'illegal move of a stage run' USING ERRCODE = 'check_violation';
        END IF;
        RETURN NEW;
    END $$
    """,
    """
    CREATE TRIGGER stage_run_guard BEFORE UPDATE OF status, fencing_token ON stage_run FOR EACH ROW
    WHEN (OLD.status IS DISTINCT FROM NEW.status OR NEW.fencing_token < OLD.fencing_token)
    EXECUTE FUNCTION stage_run_guard()
    """,
)

NAMES = (
    "webhook_delivery",
    "webhook_endpoint",
    "idempotency_key",
    "job_event",
    "dead_letter",
    "outbox_event",
    "result",
    "page_text",
    "stage_output",
    "stage_attempt",
    "stage_run",
    "worker",
    "document",
    "job",
    "api_key",
    "tenant",
)


def upgrade() -> None:
    """Make every table, index and guard."""
    for statement in (*TABLES, *INDEXES, *GUARDS):
        op.execute(statement)


def downgrade() -> None:
    """Drop every table and guard."""
    for name in NAMES:
        op.execute(f"DROP TABLE {name}")
    op.execute("DROP FUNCTION job_guard()")
    op.execute("DROP FUNCTION stage_run_guard()")
