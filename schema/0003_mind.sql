-- The working mind: what becomes of a segment when silence falls, what a long one is compressed
-- into, and how each answer came about.

-- `collapsing_at`: when silence, or the user, ended it; from then on it takes no more turns.
-- `resumed_at`: when the user ended a pause; silence counts from then.
-- `tools`: the names of the tools that were called in it.
alter table segments
  add column collapsing_at timestamptz,
  add column resumed_at timestamptz,
  add column tools text[] not null default '{}';

-- The turns of one segment, newest first, are what a prompt is made of.
drop index turns_by_segment;
create index turns_by_segment on turns (segment_id, seq) where segment_id is not null;

-- What a segment was, in the first person. Written once it is true to its source, or as near as
-- the model came; `drift` then says how near: the share of its sentences that are flagged.
create table summaries (
  segment_id   uuid primary key references segments,
  user_id      uuid not null references users,
  title        text not null,
  trace        text not null,
  precis       text not null,
  complexity   real not null check (complexity in (0.5, 1, 2, 3)),
  -- In how many parts the segment was read.
  parts        integer not null,
  drift        real not null check (drift between 0 and 1),
  provider     text,
  model        text,
  made_at      timestamptz not null,
  -- When it was last held against the segment itself once more.
  rechecked_at timestamptz,
  -- Of the title, the trace and the precis as one text, by the named model.
  vector       vector,
  vector_model text,
  check ((vector is null) = (vector_model is null))
);
create index summaries_user on summaries (user_id, made_at desc);

-- Each time a summary was held against its segment: what was found, and whether it was corrected.
create table drift_checks (
  id          uuid primary key,
  user_id     uuid not null references users,
  segment_id  uuid not null references segments,
  at          timestamptz not null,
  kind        text not null check (kind in ('made', 'again')),
  sentences   integer not null,
  -- The places of the sentences that are flagged, and why: no text of them.
  flagged     jsonb not null,
  drift       real not null,
  corrected   boolean not null,
  -- Nearest older summaries, beyond those that the model was shown: id and cosine.
  nearest     jsonb not null default '[]'
);
create index drift_checks_by_segment on drift_checks (segment_id, at);
create index drift_checks_user on drift_checks (user_id, at desc);

-- The older part of a long segment in short: made from the one before and the turns themselves,
-- so that losses do not add up. The newest counts; it is void once the segment has collapsed.
create table briefs (
  id            uuid primary key,
  user_id       uuid not null references users,
  segment_id    uuid not null references segments,
  -- Turns of the segment up to and with this one are in it.
  through_seq   bigint not null,
  text          text not null,
  provider      text,
  model         text,
  made_at       timestamptz not null,
  unique (segment_id, through_seq)
);
create index briefs_user on briefs (user_id, made_at desc);

-- How an answer came about, beside its searches (retrieval_traces) and calls (model_calls): what
-- the Subcortex was asked and said, what the prompt was made of, how long each part took.
create table turn_traces (
  turn_id  uuid not null references turns,
  attempt  integer not null,
  user_id  uuid not null references users,
  at       timestamptz not null,
  trace    jsonb not null,
  primary key (turn_id, attempt)
);
create index turn_traces_user on turn_traces (user_id, at);

do $$
declare t text;
begin
  foreach t in array array['summaries', 'drift_checks', 'briefs', 'turn_traces'] loop
    execute format('alter table %I enable row level security', t);
    execute format('alter table %I force row level security', t);
    execute format('create policy own_rows on %I to mira_app
                      using (user_id = app_user()) with check (user_id = app_user())', t);
    execute format('grant select, insert, update, delete on %I to mira_app', t);
  end loop;
end $$;

-- Counting the memories of an entity reads this index alone.
drop index memory_entities_by_entity;
create index memory_entities_by_entity on memory_entities (entity_id, memory_id) include (user_id);
