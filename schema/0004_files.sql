-- Files that a user gave with a message: as they came, and as models are shown them.

create table files (
  id           uuid primary key,
  user_id      uuid not null references users,
  -- As the user's machine called it: no path, no control characters.
  name         text not null,
  kind         text not null check (kind in ('image', 'document')),
  -- What the bytes are, not what they were said to be.
  media_type   text not null,
  size         bigint not null,
  sha256       bytea not null,
  content      bytea not null,
  -- An image in two sizes: for the turn it was given in, and for later ones.
  large        bytea,
  large_type   text,
  large_width  integer,
  large_height integer,
  small        bytea,
  small_width  integer,
  small_height integer,
  -- The words of a document, bounded; `words_cut` where there were more.
  words        text not null default '',
  words_cut    boolean not null default false,
  pages        integer,
  -- What a person should know of how it was read: a page without words, a sheet left out.
  notes        text[] not null default '{}',
  created_at   timestamptz not null,
  -- The first turn it was given with; until then it may be taken away again.
  turn_id      uuid references turns,
  check ((kind = 'image') = (large is not null and small is not null))
);
create unique index files_once on files (user_id, sha256, name);
create index files_unused on files (user_id, created_at) where turn_id is null;
alter table files alter column content set storage external;
alter table files alter column large set storage external;
alter table files alter column small set storage external;

alter table files enable row level security;
alter table files force row level security;
create policy own_rows on files to mira_app
  using (user_id = app_user()) with check (user_id = app_user());
grant select, insert, update, delete on files to mira_app;
