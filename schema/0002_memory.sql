-- Memory: facts with their history, links and entities; what the search needs of them and of the
-- messages; extraction's books. The score itself is a function: functions/scoring.sql.

create extension if not exists vector;

-- How the two sides of the conversation are called in it; both belong to the searched text.
alter table users
  add column display_name text,
  add column assistant_name text not null default 'MIRA';

-- Turns up to here have the words of their messages in the search, and the vectors.
alter table conversations
  add column indexed_seq bigint not null default 0,
  add column encoded_seq bigint not null default 0;

-- Set when every fact of the segment is stored. A collapsed segment without it is still due.
alter table segments add column extracted_at timestamptz;
create index segments_unextracted on segments (user_id, collapsed_at)
  where state = 'collapsed' and extracted_at is null;
create index turns_by_segment on turns (segment_id) where segment_id is not null;

-- Memories that everybody may find belong to this user, whom nobody is. They are read as this
-- user, in a transaction of its own: the policies need no exception for them.
-- (Row-level security binds the owner, too: it steps aside for this one row.)
alter table users no force row level security;
insert into users (id, name, created_at) values
  ('00000000-0000-0000-0000-0000000000ff', 'global', 'epoch');
alter table users force row level security;

create table memories (
  id               uuid primary key,
  user_id          uuid not null references users,
  -- What prompts and models call it.
  short_id         text not null check (short_id ~ '^mem_[0-9a-f]{8}$'),
  -- Its number in postings and vectors.
  doc              integer not null,
  text             text not null check (char_length(text) between 10 and 4000),
  status           text not null default 'active' check (status in ('active', 'archived')),
  source           text not null
                     check (source in ('extraction', 'tool', 'user', 'import', 'merge')),
  -- The evidence: the segment and its messages, the turn of a tool, or the memories of a merge.
  source_segment   uuid references segments,
  source_turn      uuid references turns,
  source_messages  uuid[] not null default '{}',
  source_memories  uuid[] not null default '{}',
  happens_at       timestamptz,
  expires_at       timestamptz,
  -- When the fact was true; a newer one closes it.
  valid_from       timestamptz not null,
  valid_to         timestamptz,
  superseded_by    uuid references memories,
  created_at       timestamptz not null,
  updated_at       timestamptz not null,
  -- Rises with each change; a change that names an older one is refused.
  version          integer not null default 1,
  unique (user_id, short_id),
  unique (user_id, doc)
) with (fillfactor = 80);
create index memories_by_time on memories (user_id, status, created_at desc, id desc);
create index memories_dated on memories (user_id)
  where status = 'active' and (happens_at is not null or expires_at is not null);

-- What decay reads and writes of a memory: narrow, since a day's turn may rewrite many of them.
create table memory_scores (
  memory_id            uuid primary key references memories on delete cascade,
  user_id              uuid not null references users,
  importance           real not null,
  use_day_created      integer not null,
  -- Null: never used.
  use_day_accessed     integer,
  access_count         integer not null default 0,
  mention_count        integer not null default 0,
  -- What its entities give to the score (see memory_scores_at), as of the last calculation.
  shared_entities      double precision not null default 0,
  -- The turn that last counted as use: once a turn is enough.
  last_turn            uuid,
  -- Since when the score lies under the floor; archived after so many use-days of it.
  below_since_use_day  integer,
  -- When integration or the floor review last looked at it, successfully.
  integrated_at        timestamptz,
  reviewed_use_day     integer
) with (fillfactor = 70);
create index memory_scores_by_importance on memory_scores (user_id, importance desc);
create index memory_scores_new on memory_scores (user_id) where integrated_at is null;
create index memory_scores_below on memory_scores (user_id) where below_since_use_day is not null;

create table memory_annotations (
  id         uuid primary key,
  user_id    uuid not null references users,
  memory_id  uuid not null references memories on delete cascade,
  author     text not null check (author in ('user', 'model', 'review')),
  text       text not null check (char_length(text) between 1 and 4000),
  at         timestamptz not null
);
create index memory_annotations_by_memory on memory_annotations (memory_id, at);

-- Every change of a memory, with what stood before and after: readable, and undone step by step.
-- No reference to memories: the account of a deleted memory outlives it, without its words.
create table memory_events (
  id         uuid primary key,
  user_id    uuid not null references users,
  memory_id  uuid not null,
  kind       text not null check (kind in
               ('created', 'reinforced', 'touched', 'linked', 'unlinked', 'annotated', 'merged',
                'superseded', 'archived', 'restored', 'edited', 'deleted', 'undone')),
  actor      text not null check (actor in
               ('user', 'model', 'extraction', 'linking', 'consolidation', 'review', 'entities',
                'decay', 'import')),
  turn_id    uuid,
  at         timestamptz not null,
  before     jsonb,
  after      jsonb,
  -- Events of one step (a merge touches several memories) are undone together.
  step       uuid not null,
  undone_by  uuid
);
create index memory_events_by_memory on memory_events (user_id, memory_id, id desc);
create index memory_events_by_step on memory_events (user_id, step);

create table memory_links (
  user_id     uuid not null references users,
  from_id     uuid not null references memories on delete cascade,
  to_id       uuid not null references memories on delete cascade,
  type        text not null check (type in
                ('conflicts', 'supersedes', 'corroborates', 'refines', 'exemplifies', 'precedes',
                 'contextualizes', 'causes', 'shares_entity', 'other')),
  -- Why, in the words of whoever linked them; a bond of the extractor has at most three.
  reason      text not null default '',
  confidence  real not null default 1 check (confidence between 0 and 1),
  created_at  timestamptz not null,
  primary key (from_id, to_id, type),
  check (from_id <> to_id)
);
create index memory_links_to on memory_links (to_id);
create index memory_links_user on memory_links (user_id);

create table entities (
  id           uuid primary key,
  user_id      uuid not null references users,
  name         text not null,
  -- The name as it is compared: without case, accents, articles.
  key          text not null,
  type         text not null check (type in
                 ('PERSON', 'ORG', 'GPE', 'NORP', 'FAC', 'LOC', 'PRODUCT', 'EVENT', 'WORK_OF_ART',
                  'LAW', 'LANGUAGE', 'OTHER')),
  merged_into  uuid references entities,
  created_at   timestamptz not null,
  unique (user_id, key, type)
);

create table memory_entities (
  user_id    uuid not null references users,
  memory_id  uuid not null references memories on delete cascade,
  entity_id  uuid not null references entities on delete cascade,
  primary key (memory_id, entity_id)
);
-- The newest memories of an entity first (their ids rise with time).
create index memory_entities_by_entity on memory_entities (entity_id, memory_id);
create index memory_entities_user on memory_entities (user_id);

-- The search: two sources (1 memories, 2 passages of the history), the same shape.

-- One message of the history. Inside a segment the numbers follow each other, between segments one
-- is left out: a passage's neighbours are doc - 1 and doc + 1.
create table passages (
  user_id     uuid not null references users,
  doc         integer not null,
  message_id  uuid not null references messages,
  segment_id  uuid references segments,
  turn_seq    bigint not null,
  role        text not null check (role in ('user', 'assistant')),
  said_at     timestamptz not null,
  -- Terms in it, and whether it asks something, says when, and says how many.
  length      integer not null,
  asks        boolean not null,
  timed       boolean not null,
  counted     boolean not null,
  primary key (user_id, doc),
  unique (message_id)
);
create index passages_by_turn on passages (user_id, turn_seq);

create table corpora (
  user_id    uuid not null references users,
  source     smallint not null check (source in (1, 2)),
  documents  integer not null default 0,
  length     bigint not null default 0,
  next_doc   integer not null default 1,
  primary key (user_id, source)
) with (fillfactor = 50);

create table postings (
  user_id  uuid not null references users,
  source   smallint not null check (source in (1, 2)),
  term     text collate "C" not null,
  doc      integer not null,
  tf       smallint not null,
  -- The length of the document, said again here so that scoring needs no join.
  length   integer not null,
  primary key (user_id, source, term, doc) include (tf, length)
) with (autovacuum_vacuum_insert_scale_factor = 0.02);

create table term_counts (
  user_id    uuid not null references users,
  source     smallint not null check (source in (1, 2)),
  term       text collate "C" not null,
  documents  integer not null,
  primary key (user_id, source, term) include (documents)
) with (fillfactor = 70);

-- Models that vectors come from. A user's searches use one of them alone.
create table embedding_models (
  id          smallint generated always as identity primary key,
  name        text not null unique,
  dimension   integer not null,
  created_at  timestamptz not null
);
create table embedding_spaces (
  user_id      uuid primary key references users,
  active       smallint not null references embedding_models,
  -- The model to which the user's vectors are being moved.
  next         smallint references embedding_models,
  switched_at  timestamptz not null
);

-- unit: of a memory 0; of a passage 0 for it with its neighbours, then its parts from 1.
create table vectors_384 (
  user_id  uuid not null references users,
  source   smallint not null check (source in (1, 2)),
  model    smallint not null references embedding_models,
  doc      integer not null,
  unit     smallint not null,
  v        halfvec(384) not null,
  primary key (user_id, source, model, doc, unit)
);
alter table vectors_384 alter column v set storage plain;
create table vectors_768 (
  user_id  uuid not null references users,
  source   smallint not null check (source in (1, 2)),
  model    smallint not null references embedding_models,
  doc      integer not null,
  unit     smallint not null,
  v        halfvec(768) not null,
  primary key (user_id, source, model, doc, unit)
);
alter table vectors_768 alter column v set storage plain;
create table vectors_1024 (
  user_id  uuid not null references users,
  source   smallint not null check (source in (1, 2)),
  model    smallint not null references embedding_models,
  doc      integer not null,
  unit     smallint not null,
  v        halfvec(1024) not null,
  primary key (user_id, source, model, doc, unit)
);
alter table vectors_1024 alter column v set storage plain;

-- The signs of vectors, those of many documents in a row: what a search of a large store looks at
-- first (see mira/store/signatures.py).
create table signatures (
  user_id  uuid not null references users,
  source   smallint not null check (source in (1, 2)),
  model    smallint not null references embedding_models,
  block    integer not null,
  bits     bytea not null,
  primary key (user_id, source, model, block)
) with (fillfactor = 70);
alter table signatures alter column bits set storage plain;

-- What each search looked for, what it found, and what was kept of it and why.
create table retrieval_traces (
  id        uuid primary key,
  user_id   uuid not null references users,
  turn_id   uuid references turns,
  purpose   text not null,
  at        timestamptz not null,
  -- Null once it is old: then only ids and scores are kept.
  query     jsonb,
  results   jsonb not null,
  -- What of it was shown to the model, and what of that was used.
  surfaced  uuid[] not null default '{}',
  used      uuid[] not null default '{}'
);
create index retrieval_traces_by_turn on retrieval_traces (turn_id);
create index retrieval_traces_by_time on retrieval_traces (user_id, at desc);
create index retrieval_traces_whole on retrieval_traces (user_id, at) where query is not null;

-- Extraction: a segment is cut into chunks, each of which is asked for once.
create table batches (
  id            uuid primary key,
  user_id       uuid not null references users,
  -- The provider's own name for it. Null until it has answered: then it is looked for by its items.
  provider_id   text,
  provider      text not null,
  state         text not null check (state in ('intent', 'submitted', 'ended', 'gone')),
  created_at    timestamptz not null,
  submitted_at  timestamptz,
  ended_at      timestamptz,
  last_error    text
);
create index batches_open on batches (user_id) where state in ('intent', 'submitted');

create table extraction_chunks (
  -- With the end of the batch's id also the item's name in a batch.
  id             uuid primary key,
  user_id        uuid not null references users,
  segment_id     uuid not null references segments,
  ordinal        integer not null,
  message_ids    uuid[] not null,
  state          text not null default 'waiting' check (state in ('waiting', 'asked', 'done')),
  batch_id       uuid references batches,
  attempts       integer not null default 0,
  last_error     text,
  calls          integer not null default 0,
  input_tokens   bigint not null default 0,
  output_tokens  bigint not null default 0,
  created_at     timestamptz not null,
  done_at        timestamptz,
  unique (segment_id, ordinal)
);
create index extraction_chunks_open on extraction_chunks (user_id, segment_id) where state <> 'done';
create index extraction_chunks_by_batch on extraction_chunks (batch_id);

-- Work that is due every so many use-days.
create table memory_jobs (
  user_id           uuid not null references users,
  job               text not null,
  last_run_use_day  integer not null,
  last_run_at       timestamptz not null,
  primary key (user_id, job)
);

-- Sets of memories whose merging was refused; after three times they are left alone.
create table refused_merges (
  user_id     uuid not null references users,
  members     uuid[] not null,
  refusals    integer not null default 1,
  last_at     timestamptz not null,
  primary key (user_id, members)
);

do $$
declare t text;
begin
  foreach t in array array[
      'memories', 'memory_scores', 'memory_annotations', 'memory_events', 'memory_links',
      'entities', 'memory_entities', 'passages', 'corpora', 'postings', 'term_counts',
      'embedding_spaces', 'vectors_384', 'vectors_768', 'vectors_1024', 'signatures',
      'retrieval_traces',
      'batches', 'extraction_chunks', 'memory_jobs', 'refused_merges'] loop
    execute format('alter table %I enable row level security', t);
    execute format('alter table %I force row level security', t);
    execute format('create policy own_rows on %I to mira_app
                      using (user_id = app_user()) with check (user_id = app_user())', t);
    execute format('grant select, insert, update, delete on %I to mira_app', t);
  end loop;
end $$;

-- The account of what happened is written and marked as undone, never taken away.
revoke delete on memory_events from mira_app;
grant select, insert on embedding_models to mira_app;
grant update (display_name, assistant_name) on users to mira_app;
create policy own_names on users for update to mira_app
  using (id = app_user()) with check (id = app_user());
