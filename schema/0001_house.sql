-- The house: users, the one conversation of each, turns, messages, keys, and durable work.
--
-- Roles: the owner runs this file; mira_app works for one user at a time under row-level
-- security; mira_engine moves durable work and knows users and keys, but reads no conversation.
-- They exist before this file is applied.

-- Who is speaking: set once per transaction by the program, for that transaction alone.
-- Unset reads as null (after a transaction it is '', hence the nullif): no user, no rows.
create function app_user() returns uuid language sql stable parallel safe
  return nullif(current_setting('app.user_id', true), '')::uuid;

create table users (
  id          uuid primary key,
  name        text not null unique check (name ~ '^[a-z0-9][a-z0-9_.-]{0,63}$'),
  timezone    text not null default 'UTC',
  created_at  timestamptz not null
);

-- One row in all. Each server that starts raises the generation; writes of an older one are refused.
create table house (
  one         boolean primary key default true check (one),
  generation  bigint not null default 0
);
insert into house default values;

create table conversations (
  user_id        uuid primary key references users,
  id             uuid not null unique,
  next_seq       bigint not null default 1,
  -- Raised by each activation of the door; a commit that carries an older one is refused.
  epoch          bigint not null default 0,
  -- Days on which the user has spoken, and the last of them, by the user's own calendar.
  use_days       integer not null default 0,
  last_use_date  date,
  working_state  jsonb not null default '{}',
  created_at     timestamptz not null
) with (fillfactor = 70);

create table segments (
  id               uuid primary key,
  user_id          uuid not null references users,
  state            text not null check (state in ('active', 'paused', 'collapsing', 'collapsed')),
  opened_at        timestamptz not null,
  last_message_at  timestamptz not null,
  collapsed_at     timestamptz,
  title            text
) with (fillfactor = 70);
create unique index segments_one_open on segments (user_id) where state in ('active', 'paused');
create index segments_by_time on segments (user_id, opened_at desc, id desc);

create table turns (
  id                   uuid primary key,
  user_id              uuid not null references users,
  seq                  bigint not null,
  request_id           text not null,
  -- SHA-256 of what was asked: the same request_id with other content is a conflict.
  request_digest       bytea not null,
  origin               text not null default 'user' check (origin in ('user', 'action')),
  state                text not null check (state in
                         ('received', 'running', 'complete', 'cancelled', 'interrupted', 'failed')),
  attempt              integer not null default 0,
  segment_id           uuid references segments,
  -- The ordinal of the use-day that this turn began; null where the day had begun before.
  use_day              integer,
  accepted_at          timestamptz not null,
  started_at           timestamptz,
  finished_at          timestamptz,
  cancel_requested_at  timestamptz,
  -- When the handlers of its closing event were through.
  settled_at           timestamptz,
  -- What a client may have seen of the running attempt, written now and then off the path.
  -- (checkpoint_attempt = attempt: this very attempt has been seen.)
  checkpoint_attempt   integer not null default 0,
  checkpoint_text      text not null default '',
  provider             text,
  model                text,
  usage                jsonb,
  timings              jsonb,
  error_code           text,
  error_detail         text,
  unique (user_id, seq),
  unique (user_id, request_id)
) with (fillfactor = 60);
create index turns_open on turns (user_id, seq) where state in ('received', 'running');
create index turns_unsettled on turns (user_id, seq)
  where settled_at is null and state in ('complete', 'cancelled', 'interrupted', 'failed');

-- Immutable: the program may insert and read, never change. A retried turn adds rows under its
-- new attempt; the history shows the user's words (attempt 0) and the turn's latest attempt.
create table messages (
  id          uuid primary key,
  user_id     uuid not null references users,
  turn_id     uuid not null references turns,
  turn_seq    bigint not null,
  attempt     integer not null default 0,
  position    integer not null,
  role        text not null check (role in ('user', 'assistant', 'tool')),
  content     jsonb not null,
  state       text not null default 'complete' check (state in ('complete', 'cancelled', 'interrupted')),
  created_at  timestamptz not null,
  unique (user_id, turn_seq, attempt, position)
);
create index messages_by_turn on messages (turn_id);

create table use_days (
  user_id     uuid not null references users,
  local_date  date not null,
  ordinal     integer not null,
  turn_id     uuid not null references turns,
  primary key (user_id, local_date),
  unique (user_id, ordinal)
);

-- One row for each physical call of a provider, failed ones included.
create table model_calls (
  id                  uuid primary key,
  user_id             uuid not null references users,
  turn_id             uuid references turns,
  purpose             text not null,
  provider            text not null,
  model               text not null,
  input_tokens        bigint not null,
  output_tokens       bigint not null,
  cache_read_tokens   bigint not null,
  cache_write_tokens  bigint not null,
  reported            boolean not null,
  first_event_ms      double precision,
  total_ms            double precision not null,
  error               text,
  at                  timestamptz not null
);
create index model_calls_by_turn on model_calls (turn_id);
create index model_calls_by_time on model_calls (user_id, at desc);

-- The journal of calls that change the world outside: written before, and again after.
create table effects (
  user_id      uuid not null references users,
  turn_id      uuid not null references turns,
  call_id      text not null,
  tool         text not null,
  arguments    jsonb not null,
  state        text not null check (state in ('started', 'done', 'failed')),
  result       text,
  started_at   timestamptz not null,
  finished_at  timestamptz,
  primary key (turn_id, call_id)
);

-- Calls that wait for the user's word. Executed exactly as stored, once.
create table pending_actions (
  id           uuid primary key,
  user_id      uuid not null references users,
  turn_id      uuid not null references turns,
  call_id      text not null,
  tool         text not null,
  arguments    jsonb not null,
  state        text not null default 'pending'
                 check (state in ('pending', 'allowed', 'refused', 'executed', 'expired')),
  created_at   timestamptz not null,
  expires_at   timestamptz not null,
  decided_at   timestamptz,
  result       text,
  follow_up    uuid references turns,
  unique (turn_id, call_id)
);
create index pending_actions_open on pending_actions (user_id, created_at) where state = 'pending';

-- Durable messages and timers. A row is undone work: it is deleted by the transaction that does it.
create table outbox (
  id          bigint generated always as identity primary key,
  -- Raised when a newer message with the same key replaces this one.
  version     integer not null default 1,
  user_id     uuid references users,
  kind        text not null,
  address     text not null,
  lane        text not null,
  key         text,
  payload     jsonb not null,
  due_at      timestamptz not null,
  attempts    integer not null default 0,
  last_error  text,
  created_at  timestamptz not null
);
create unique index outbox_key on outbox (kind, address, lane, key) where key is not null;
create index outbox_lane on outbox (kind, address, lane, id);
create index outbox_due on outbox (due_at, id);

create table dead_letters (
  id           bigint generated always as identity primary key,
  outbox_id    bigint not null unique,
  user_id      uuid references users,
  kind         text not null,
  address      text not null,
  lane         text not null,
  key          text,
  payload      jsonb not null,
  attempts     integer not null,
  error        text not null,
  created_at   timestamptz not null,
  buried_at    timestamptz not null,
  replayed_at  timestamptz
);

-- Keys and sign-in: only hashes are kept. Known to the engine role alone.
create table api_keys (
  id            uuid primary key,
  user_id       uuid not null references users,
  name          text not null,
  scope         text not null check (scope in ('chat', 'read', 'admin')),
  hash          bytea not null unique,
  created_at    timestamptz not null,
  last_used_at  timestamptz,
  revoked_at    timestamptz
);
create unique index api_keys_name on api_keys (user_id, name) where revoked_at is null;

create table signin_links (
  hash        bytea primary key,
  user_id     uuid not null references users,
  expires_at  timestamptz not null,
  used_at     timestamptz
);

-- A browser's session may do what its key may (signing in by link: everything), and ends with it.
create table sessions (
  hash        bytea primary key,
  user_id     uuid not null references users,
  key_id      uuid references api_keys,
  scope       text not null check (scope in ('chat', 'read', 'admin')),
  created_at  timestamptz not null,
  expires_at  timestamptz not null
);
create index sessions_expiry on sessions (expires_at);

-- Two users that nobody is: at each start the program proves on them that one cannot see the other.
insert into users (id, name, created_at) values
  ('00000000-0000-0000-0000-00000000000a', 'canary-a', 'epoch'),
  ('00000000-0000-0000-0000-00000000000b', 'canary-b', 'epoch');
insert into segments (id, user_id, state, opened_at, last_message_at, collapsed_at) values
  ('00000000-0000-0000-0000-0000000000aa', '00000000-0000-0000-0000-00000000000a', 'collapsed',
   'epoch', 'epoch', 'epoch'),
  ('00000000-0000-0000-0000-0000000000bb', '00000000-0000-0000-0000-00000000000b', 'collapsed',
   'epoch', 'epoch', 'epoch');

-- Row-level security: forced, so that even the owner is bound by it where it is no superuser.
do $$
declare t text;
begin
  foreach t in array array['conversations', 'segments', 'turns', 'messages', 'use_days',
                           'model_calls', 'effects', 'pending_actions', 'outbox'] loop
    execute format('alter table %I enable row level security', t);
    execute format('alter table %I force row level security', t);
    execute format('create policy own_rows on %I to mira_app
                      using (user_id = app_user()) with check (user_id = app_user())', t);
  end loop;
end $$;

alter table users enable row level security;
alter table users force row level security;
create policy own_row on users for select to mira_app using (id = app_user());
create policy engine_all on users to mira_engine using (true) with check (true);
create policy engine_all on outbox to mira_engine using (true) with check (true);

grant usage on schema public to mira_app, mira_engine;
grant select on users, house to mira_app;
grant select, insert, update on conversations, segments, turns, effects, pending_actions to mira_app;
grant select, insert on messages, use_days, model_calls to mira_app;
grant select, insert, update, delete on outbox to mira_app;

grant select, insert, update on users, house, api_keys to mira_engine;
grant select, insert, update, delete on signin_links, sessions, outbox to mira_engine;
grant select, insert, update on dead_letters to mira_engine;
