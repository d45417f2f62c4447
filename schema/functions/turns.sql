-- The life of a turn: each step is one call, so that it costs one round trip.
-- All run as the caller, under row-level security.

-- True if this server and this activation are still the ones that may write.
-- Holds the conversation against a newer activation until the transaction ends.
create or replace function may_write(p_user uuid, p_epoch bigint, p_generation bigint)
returns boolean language plpgsql as $$
begin
  perform 1 from conversations c, house h
    where c.user_id = p_user and c.epoch = p_epoch and h.generation = p_generation
    for share of c;
  return found;
end $$;

-- The same for a transaction that goes on to change the conversation's row: it takes the lock that
-- this needs at once, since two that hold the weaker one would wait for each other.
create or replace function may_change(p_user uuid, p_epoch bigint, p_generation bigint)
returns boolean language plpgsql as $$
begin
  perform 1 from conversations c, house h
    where c.user_id = p_user and c.epoch = p_epoch and h.generation = p_generation
    for no key update of c;
  return found;
end $$;

-- Accept a message: the turn, the words, the use-day and the wake-up of the door, or nothing.
-- Files come by id and are named in the message, in the order given, behind its words.
-- outcome: accepted, duplicate (the turn that stands), conflict (other words under this
-- request_id), full, stale (an older server), unknown (no such conversation), files (one of the
-- files is not there).
create or replace function accept_turn(
  p_user uuid, p_turn uuid, p_message uuid, p_request_id text, p_digest bytea, p_content jsonb,
  p_files uuid[], p_at timestamptz, p_limit integer, p_wake jsonb, p_generation bigint,
  out outcome text, out attached jsonb, out turn uuid, out seq bigint, out state text,
  out outbox_id bigint, out outbox_version integer
) language plpgsql as $$
#variable_conflict use_column
declare
  v_conversation conversations;
  v_old turns;
  v_today date;
  v_use_day integer;
begin
  attached := '[]';
  select * into v_conversation from conversations c where c.user_id = p_user for no key update;
  if not found then outcome := 'unknown'; return; end if;
  select * into v_old from turns t where t.user_id = p_user and t.request_id = p_request_id;
  if found then
    outcome := case when v_old.request_digest = p_digest then 'duplicate' else 'conflict' end;
    turn := v_old.id; seq := v_old.seq; state := v_old.state;
    return;
  end if;
  if not exists (select 1 from house h where h.generation = p_generation) then
    outcome := 'stale'; return;
  end if;
  if (select count(*) from turns t where t.user_id = p_user
        and t.state in ('received', 'running') and t.state = 'received') >= p_limit then
    outcome := 'full'; return;
  end if;
  if cardinality(p_files) > 0 then
    -- Held, so that none is taken away before it is named.
    perform 1 from files f where f.user_id = p_user and f.id = any(p_files) for no key update;
    select jsonb_agg(jsonb_build_object('type', 'file', 'file_id', f.id, 'name', f.name,
             'kind', f.kind, 'media_type', f.media_type, 'size', f.size)
             order by array_position(p_files, f.id))
      into attached from files f where f.user_id = p_user and f.id = any(p_files);
    if attached is null or jsonb_array_length(attached) < cardinality(p_files) then
      outcome := 'files'; return;
    end if;
  end if;

  -- The user's own calendar decides, and only forward: a journey west repeats no day.
  select (p_at at time zone u.timezone)::date into v_today from users u where u.id = p_user;
  if v_conversation.last_use_date is null or v_today > v_conversation.last_use_date then
    v_use_day := v_conversation.use_days + 1;
  end if;

  outcome := 'accepted'; turn := p_turn; seq := v_conversation.next_seq; state := 'received';
  update conversations c
    set next_seq = c.next_seq + 1,
        use_days = coalesce(v_use_day, c.use_days),
        last_use_date = case when v_use_day is null then c.last_use_date else v_today end
    where c.user_id = p_user;
  insert into turns (id, user_id, seq, request_id, request_digest, state, use_day, accepted_at)
    values (p_turn, p_user, seq, p_request_id, p_digest, 'received', v_use_day, p_at);
  insert into messages (id, user_id, turn_id, turn_seq, position, role, content, created_at)
    values (p_message, p_user, p_turn, seq, 0, 'user', p_content || attached, p_at);
  update files f set turn_id = p_turn
    where f.user_id = p_user and f.id = any(p_files) and f.turn_id is null;
  if v_use_day is not null then
    insert into use_days (user_id, local_date, ordinal, turn_id)
      values (p_user, v_today, v_use_day, p_turn);
  end if;
  select w.id, w.version into outbox_id, outbox_version from wake_door(p_user, p_wake, p_at) w;
end $$;

-- Write the one wake-up of a conversation's door, or make the one that stands newer. It is due
-- whatever the clock shows: one that was set back must not keep a message waiting.
create or replace function wake_door(
  p_user uuid, p_wake jsonb, p_at timestamptz, out id bigint, out version integer
) language sql as $$
  insert into outbox as o (user_id, kind, address, lane, key, payload, due_at, created_at)
    values (p_user, 'continuum', p_user::text, 'turns', 'turns', p_wake, 'epoch', p_at)
  on conflict (kind, address, lane, key) where key is not null
    do update set version = o.version + 1, payload = excluded.payload, due_at = excluded.due_at,
                  attempts = 0, last_error = null
  returning o.id, o.version
$$;

-- The door wakes: take over the conversation. Older activations can write no more.
create or replace function activate_conversation(p_user uuid, p_generation bigint)
returns bigint language sql as $$
  update conversations c set epoch = c.epoch + 1
    where c.user_id = p_user and exists (select 1 from house h where h.generation = p_generation)
    returning c.epoch
$$;

-- Take the oldest waiting turn: running from here, in the open segment or a new one, whose timer
-- begins (p_idle: seconds of silence that end a segment). A pause ends with it.
-- outcome: taken, cancelled (it was cancelled while it waited; it is final now), none, stale.
create or replace function take_turn(
  p_user uuid, p_epoch bigint, p_generation bigint, p_new_segment uuid, p_at timestamptz,
  p_idle double precision,
  out outcome text, out turn uuid, out seq bigint, out attempt integer, out origin text,
  out request_id text, out accepted_at timestamptz, out use_day integer, out message uuid,
  out content jsonb, out segment uuid, out segment_opened boolean
) language plpgsql as $$
#variable_conflict use_column
declare v_turn turns; v_state text; v_said timestamptz;
begin
  if not may_write(p_user, p_epoch, p_generation) then outcome := 'stale'; return; end if;
  select * into v_turn from turns t
    where t.user_id = p_user and t.state in ('received', 'running') and t.state = 'received'
    order by t.seq limit 1 for no key update;
  if not found then outcome := 'none'; return; end if;
  turn := v_turn.id; seq := v_turn.seq; origin := v_turn.origin;
  request_id := v_turn.request_id; accepted_at := v_turn.accepted_at; use_day := v_turn.use_day;

  if v_turn.cancel_requested_at is not null then
    outcome := 'cancelled'; attempt := v_turn.attempt;
    update turns t set state = 'cancelled', finished_at = p_at where t.id = v_turn.id;
    return;
  end if;

  outcome := 'taken'; attempt := v_turn.attempt + 1;
  -- What is run again is as if it were said again: silence counts from now.
  v_said := case when v_turn.attempt > 0 then greatest(v_turn.accepted_at, p_at)
                 else v_turn.accepted_at end;
  select s.id, s.state into segment, v_state from segments s
    where s.user_id = p_user and s.state in ('active', 'paused');
  segment_opened := not found;
  if segment_opened then
    segment := p_new_segment;
    insert into segments (id, user_id, state, opened_at, last_message_at)
      -- Segments follow each other, whatever the clock shows.
      select segment, p_user, 'active', greatest(v_said, max(s.opened_at) + interval '1 microsecond'),
             v_said
        from segments s where s.user_id = p_user;
  else
    update segments s set state = 'active', last_message_at = greatest(s.last_message_at, v_said)
      where s.id = segment;
  end if;
  if segment_opened or v_state = 'paused' then
    perform watch_silence(p_user, segment, v_said + make_interval(secs => p_idle), p_at);
  end if;
  update turns t set state = 'running', attempt = t.attempt + 1, segment_id = segment,
      started_at = p_at, checkpoint_text = ''
    where t.id = v_turn.id;
  select m.id, m.content into message, content from messages m
    where m.user_id = p_user and m.turn_seq = v_turn.seq and m.attempt = 0 and m.position = 0;
end $$;

-- Close a running turn with everything that belongs to it, and with the door's working state and
-- the turn's trace, where they are given. The first writer wins: returns the state in which the
-- turn stands (p_state if this call closed it), or null if stale.
create or replace function close_turn(
  p_user uuid, p_epoch bigint, p_generation bigint, p_turn uuid, p_attempt integer,
  p_state text, p_at timestamptz, p_messages jsonb, p_calls jsonb, p_provider text, p_model text,
  p_usage jsonb, p_timings jsonb, p_error_code text, p_error_detail text,
  p_working jsonb, p_trace jsonb
) returns text language plpgsql as $$
declare v_seq bigint; v_state text;
begin
  if not may_change(p_user, p_epoch, p_generation) then return null; end if;
  update turns t
    set state = p_state, finished_at = p_at, provider = p_provider, model = p_model,
        usage = p_usage, timings = p_timings, error_code = p_error_code,
        error_detail = p_error_detail
    where t.id = p_turn and t.user_id = p_user and t.state = 'running' and t.attempt = p_attempt
    returning t.seq into v_seq;
  if not found then
    select t.state into v_state from turns t where t.id = p_turn and t.user_id = p_user;
    return v_state;
  end if;
  insert into messages (id, user_id, turn_id, turn_seq, attempt, position, role, content, state, created_at)
    select m.id, p_user, p_turn, v_seq, p_attempt, m.position, m.role, m.content, m.state, p_at
    from jsonb_to_recordset(p_messages)
      as m(id uuid, position integer, role text, content jsonb, state text);
  perform record_calls(p_user, p_turn, p_at, p_calls);
  if p_working is not null then
    update conversations c set working_state = p_working where c.user_id = p_user;
  end if;
  if p_trace is not null then
    insert into turn_traces (turn_id, attempt, user_id, at, trace)
      values (p_turn, p_attempt, p_user, p_at, p_trace)
    on conflict (turn_id, attempt) do update set trace = excluded.trace, at = excluded.at;
  end if;
  -- Which of the memories that were shown the answer has used is for their keeper to say; it can
  -- wait until somebody looks for work.
  if p_state = 'complete' and jsonb_array_length(p_trace -> 'memories') > 0 then
    insert into outbox (user_id, kind, address, lane, key, payload, due_at, created_at)
      values (p_user, 'memory_keeper', p_user::text, 'use', p_turn::text,
              jsonb_build_object('type', 'CountUse', 'turn_id', p_turn), p_at, p_at)
    on conflict (kind, address, lane, key) where key is not null
      do update set version = outbox.version + 1, due_at = excluded.due_at, attempts = 0;
  end if;
  return p_state;
end $$;

create or replace function record_calls(p_user uuid, p_turn uuid, p_at timestamptz, p_calls jsonb)
returns void language sql as $$
  insert into model_calls (id, user_id, turn_id, purpose, provider, model, input_tokens,
      output_tokens, cache_read_tokens, cache_write_tokens, reported, first_event_ms, total_ms,
      error, at)
    select c.id, p_user, p_turn, c.purpose, c.provider, c.model, c.input_tokens, c.output_tokens,
      c.cache_read_tokens, c.cache_write_tokens, c.reported, c.first_event_ms, c.total_ms,
      c.error, p_at
    from jsonb_to_recordset(p_calls) as c(id uuid, purpose text, provider text, model text,
      input_tokens bigint, output_tokens bigint, cache_read_tokens bigint,
      cache_write_tokens bigint, reported boolean, first_event_ms double precision,
      total_ms double precision, error text)
$$;

-- The handlers of a closing event are through. If no other turn waits, the wake-up that brought
-- the door here is done; `done` says whether it is. The messages of the turn are still to be taken
-- into the search: for that the indexer is woken, one row for all that has not been taken in.
-- This transaction alone need not be on disk when it returns: what a crash of the machine undoes is
-- done again by the next activation.
create or replace function settle_turn(
  p_user uuid, p_turn uuid, p_at timestamptz, p_outbox bigint,
  out done boolean, out index_id bigint, out index_version integer
) language plpgsql as $$
declare v_version integer; v_seq bigint; v_attempt integer;
begin
  perform set_config('synchronous_commit', 'off', true);
  -- Where the marks will be moved, the conversation is locked first, as everywhere: whoever puts
  -- this turn back in line holds it already and comes for the turn.
  perform from conversations c where c.user_id = p_user
    and exists (select from turns t where t.id = p_turn and t.user_id = p_user
                  and t.settled_at is null and t.attempt > 1)
    for no key update of c;
  -- A turn that is put back in line meanwhile has this before it once more.
  update turns t set settled_at = p_at
    where t.id = p_turn and t.user_id = p_user and t.settled_at is null
      and t.state not in ('received', 'running')
    returning t.seq, t.attempt into v_seq, v_attempt;
  if found then
    -- An earlier attempt may have been taken in. The marks are moved in any case, so that whoever
    -- is just taking it in sees that what they have read is out of date.
    if v_attempt > 1 then
      update conversations c
        set indexed_seq = least(c.indexed_seq, v_seq) - 1, encoded_seq = least(c.encoded_seq, v_seq) - 1
        where c.user_id = p_user;
    end if;
    insert into outbox as o (user_id, kind, address, lane, key, payload, due_at, created_at)
      values (p_user, 'indexer', p_user::text, 'history', 'history', '{"type": "IndexHistory"}',
              'epoch', p_at)
    on conflict (kind, address, lane, key) where key is not null
      do update set version = o.version + 1, due_at = excluded.due_at, attempts = 0,
                    last_error = null
    returning o.id, o.version into index_id, index_version;
  end if;
  -- Read before looking for turns: one that is accepted after that look has raised the version.
  select o.version into v_version from outbox o where o.id = p_outbox;
  if exists (select 1 from turns t where t.user_id = p_user
               and t.state in ('received', 'running') and t.state = 'received') then
    done := false;
  else
    delete from outbox o where o.id = p_outbox and o.version = v_version;
    done := found;
  end if;
end $$;

-- The user wants a turn stopped. A waiting one is skipped when the door comes to it; a final one
-- stays as it is. Returns the state in which it stands, or null if there is no such turn.
create or replace function request_cancel(p_user uuid, p_turn uuid, p_at timestamptz)
returns text language sql as $$
  update turns t
    set cancel_requested_at = case when t.state in ('received', 'running')
                                   then coalesce(t.cancel_requested_at, p_at)
                                   else t.cancel_requested_at end
    where t.id = p_turn and t.user_id = p_user
    returning t.state
$$;

-- Put the newest turn back in line, if it ended without an answer and touched nothing outside.
-- outcome: accepted, missing, refused (with the reason), stale.
create or replace function retry_turn(
  p_user uuid, p_turn uuid, p_at timestamptz, p_wake jsonb, p_generation bigint,
  out outcome text, out reason text, out seq bigint, out request_id text,
  out outbox_id bigint, out outbox_version integer
) language plpgsql as $$
#variable_conflict use_column
declare v_turn turns; v_next bigint;
begin
  select c.next_seq into v_next from conversations c where c.user_id = p_user for no key update;
  select * into v_turn from turns t where t.id = p_turn and t.user_id = p_user for no key update;
  if not found then outcome := 'missing'; return; end if;
  if not exists (select 1 from house h where h.generation = p_generation) then
    outcome := 'stale'; return;
  end if;
  outcome := 'refused';
  if v_turn.seq <> v_next - 1 then reason := 'not the newest turn'; return; end if;
  if v_turn.state not in ('failed', 'cancelled', 'interrupted') then
    reason := 'the turn is ' || v_turn.state; return;
  end if;
  if exists (select 1 from effects e where e.turn_id = p_turn)
     or exists (select 1 from pending_actions a
                  where a.turn_id = p_turn and a.state in ('allowed', 'executed')) then
    reason := 'it has changed something outside, which must not happen twice'; return;
  end if;
  -- What it asked for will be asked for anew.
  update pending_actions a set state = 'expired' where a.turn_id = p_turn and a.state = 'pending';
  update turns t set state = 'received', cancel_requested_at = null, settled_at = null,
      finished_at = null, error_code = null, error_detail = null
    where t.id = p_turn;
  outcome := 'accepted'; seq := v_turn.seq; request_id := v_turn.request_id;
  select w.id, w.version into outbox_id, outbox_version from wake_door(p_user, p_wake, p_at) w;
end $$;

-- A turn that the server itself begins when the user has decided on a pending action: no words of
-- the user, no use-day. Its request_id names the action, so that it begins once.
create or replace function begin_follow_up(
  p_user uuid, p_epoch bigint, p_generation bigint, p_turn uuid, p_action uuid, p_state text,
  p_result text, p_at timestamptz
) returns boolean language plpgsql as $$
declare v_seq bigint;
begin
  if not may_change(p_user, p_epoch, p_generation) then return null; end if;
  perform from pending_actions a
    where a.id = p_action and a.user_id = p_user and a.follow_up is null for no key update;
  if not found then return false; end if;
  update conversations c set next_seq = c.next_seq + 1 where c.user_id = p_user
    returning c.next_seq - 1 into v_seq;
  insert into turns (id, user_id, seq, request_id, request_digest, origin, state, accepted_at)
    values (p_turn, p_user, v_seq, 'action:' || p_action, '', 'action', 'received', p_at);
  -- After the turn is there, since the action refers to it.
  update pending_actions a set state = p_state, result = p_result, follow_up = p_turn
    where a.id = p_action and a.user_id = p_user;
  return true;
end $$;
