-- A database as M1 leaves it: PostgreSQL's own names, no revision of ours, homes below users/.
CREATE TABLE users (
    id uuid PRIMARY KEY,
    username character varying(64) NOT NULL UNIQUE,
    password_hash character varying(255) NOT NULL,
    created_at timestamp with time zone NOT NULL DEFAULT now(),
    failed_login_attempts integer NOT NULL DEFAULT 0,
    locked_until timestamp with time zone,
    last_failed_at timestamp with time zone
);

CREATE TABLE sessions (
    id uuid PRIMARY KEY,
    user_id uuid NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    created_at timestamp with time zone NOT NULL DEFAULT now(),
    expires_at timestamp with time zone NOT NULL,
    revoked_at timestamp with time zone
);

CREATE TABLE workspaces (
    id uuid PRIMARY KEY,
    owner_user_id uuid NOT NULL REFERENCES users (id),
    name character varying(255) NOT NULL,
    description text,
    memo text,
    status character varying(32) NOT NULL,
    image_ref character varying(512) NOT NULL,
    instance_backend character varying(32) NOT NULL,
    storage_backend character varying(32) NOT NULL,
    home_store_key character varying(512) NOT NULL,
    home_ctx jsonb,
    created_at timestamp with time zone NOT NULL DEFAULT now(),
    updated_at timestamp with time zone NOT NULL DEFAULT now(),
    deleted_at timestamp with time zone
);
CREATE INDEX idx_workspaces_owner ON workspaces (owner_user_id);
CREATE INDEX idx_workspaces_status ON workspaces (status);

INSERT INTO users (id, username, password_hash) VALUES
    ('11111111-1111-4111-8111-111111111111', 'ann', '$argon2id$v=19$m=65536,t=3,p=4$c2FsdHNhbHQ$aGFzaA'),
    ('22222222-2222-4222-8222-222222222222', 'bob', '$argon2id$v=19$m=65536,t=3,p=4$c2FsdHNhbHQ$aGFzaA');

INSERT INTO sessions (id, user_id, expires_at) VALUES
    ('33333333-3333-4333-8333-333333333333', '11111111-1111-4111-8111-111111111111', '2099-01-01 00:00:00+00');

INSERT INTO workspaces (id, owner_user_id, name, memo, status, image_ref, instance_backend, storage_backend,
    home_store_key, home_ctx, created_at, updated_at, deleted_at)
SELECT id, owner, lower(status), 'memo', status, 'codercom/code-server:latest', 'local-docker', 'local-dir',
    'users/' || owner || '/workspaces/' || id || '/home', home_ctx,
    '2025-01-01 00:00:00+00', '2025-02-01 00:00:00+00', deleted_at
FROM (VALUES
    ('a0000000-0000-4000-8000-000000000001'::uuid, '11111111-1111-4111-8111-111111111111'::uuid, 'CREATED', NULL::jsonb, NULL::timestamptz),
    ('a0000000-0000-4000-8000-000000000002', '11111111-1111-4111-8111-111111111111', 'PROVISIONING', '{}', NULL),
    ('a0000000-0000-4000-8000-000000000003', '11111111-1111-4111-8111-111111111111', 'RUNNING', '{"mount": "bind"}', NULL),
    ('a0000000-0000-4000-8000-000000000004', '11111111-1111-4111-8111-111111111111', 'STOPPING', '{"mount": "bind"}', NULL),
    ('a0000000-0000-4000-8000-000000000005', '22222222-2222-4222-8222-222222222222', 'STOPPED', 'null', NULL),
    ('a0000000-0000-4000-8000-000000000006', '22222222-2222-4222-8222-222222222222', 'DELETING', '["list"]', NULL),
    ('a0000000-0000-4000-8000-000000000007', '22222222-2222-4222-8222-222222222222', 'ERROR', '{"mount": "bind"}', NULL),
    ('a0000000-0000-4000-8000-000000000008', '22222222-2222-4222-8222-222222222222', 'DELETED', '{}', '2025-02-01 00:00:00+00'::timestamptz)
) AS rows (id, owner, status, home_ctx, deleted_at);
