-- The life of a segment, as the door of its conversation lives it. All run as the caller, under
-- row-level security.

-- Set the timer of the open segment: one row in the outbox, in a lane of its own, since a row that
-- is not yet due holds up its lane.
create or replace function watch_silence(p_user uuid, p_segment uuid, p_due timestamptz, p_at timestamptz)
returns void language sql as $$
  insert into outbox as o (user_id, kind, address, lane, key, payload, due_at, created_at)
    values (p_user, 'continuum', p_user::text, 'silence', 'silence',
            jsonb_build_object('type', 'SegmentDue', 'segment_id', p_segment), p_due, p_at)
  on conflict (kind, address, lane, key) where key is not null
    do update set version = o.version + 1, payload = excluded.payload, due_at = excluded.due_at,
                  attempts = 0, last_error = null
$$;

-- Set the timer of the open segment if it has none: it was opened before there were timers, or its
-- message was buried. Nothing if there is one, if it is paused, or if no segment is open.
create or replace function keep_watch(p_user uuid, p_at timestamptz, p_idle double precision)
returns void language sql as $$
  select watch_silence(p_user, s.id,
      greatest(s.last_message_at, s.resumed_at) + make_interval(secs => p_idle), p_at)
    from segments s
    where s.user_id = p_user and s.state = 'active' and not exists (
      select from outbox o where o.kind = 'continuum' and o.address = p_user::text
        and o.lane = 'silence' and o.key = 'silence')
$$;

-- End a segment, if silence has lasted for p_idle seconds or the user wants it (p_forced; then
-- p_segment may be null: the open one). From here on the next turn opens another one, and the
-- working state of the door is that of a new segment.
-- outcome: begun; early (silence can end it at `due`); none (no such open segment, or a pause,
-- which only the user ends); stale.
create or replace function begin_collapse(
  p_user uuid, p_epoch bigint, p_generation bigint, p_segment uuid, p_at timestamptz,
  p_idle double precision, p_forced boolean,
  out outcome text, out segment uuid, out due timestamptz
) language plpgsql as $$
declare v_segment segments; v_last timestamptz;
begin
  if not may_change(p_user, p_epoch, p_generation) then outcome := 'stale'; return; end if;
  select s.* into v_segment from segments s
    where s.user_id = p_user and s.state in ('active', 'paused')
      and (p_segment is null or s.id = p_segment)
    for no key update;
  if not found or (v_segment.state = 'paused' and not p_forced) then
    outcome := 'none'; return;
  end if;
  segment := v_segment.id;
  if not p_forced then
    -- A message that is accepted but not yet taken has broken the silence already, however long it
    -- has been waiting: nothing ends while somebody waits for an answer.
    select max(t.accepted_at) into v_last from turns t
      where t.user_id = p_user and t.state in ('received', 'running');
    due := greatest(v_segment.last_message_at, v_segment.resumed_at, v_last)
           + make_interval(secs => p_idle);
    if v_last is not null then
      due := greatest(due, p_at + interval '1 minute');
    end if;
    if due > p_at then outcome := 'early'; return; end if;
  end if;
  outcome := 'begun';
  update segments s
    set state = 'collapsing', collapsing_at = p_at,
        tools = array(
          select distinct block ->> 'name' from turns t
            join messages m on m.user_id = p_user and m.turn_seq = t.seq and m.attempt = t.attempt
              and m.role = 'assistant'
            cross join lateral jsonb_array_elements(m.content) as block
          where t.segment_id = v_segment.id and block ->> 'type' = 'tool_use' order by 1)
    where s.id = v_segment.id;
  update conversations c set working_state = '{}' where c.user_id = p_user;
end $$;

-- All that a segment leaves behind is stored or durably on its way. True if this call ended it,
-- false if it had ended before, null if stale.
create or replace function end_collapse(
  p_user uuid, p_epoch bigint, p_generation bigint, p_segment uuid, p_at timestamptz
) returns boolean language plpgsql as $$
begin
  if not may_write(p_user, p_epoch, p_generation) then return null; end if;
  update segments s set state = 'collapsed', collapsed_at = p_at
    where s.user_id = p_user and s.id = p_segment and s.state = 'collapsing';
  return found;
end $$;

-- Let no silence end the open segment until somebody speaks. Returns it, or null if none is open;
-- `stale` says whether this activation may still write.
create or replace function pause_segment(
  p_user uuid, p_epoch bigint, p_generation bigint, out stale boolean, out segment uuid
) language plpgsql as $$
begin
  stale := not may_write(p_user, p_epoch, p_generation);
  if stale then return; end if;
  update segments s set state = 'paused' where s.user_id = p_user and s.state in ('active', 'paused')
    returning s.id into segment;
  delete from outbox o where o.kind = 'continuum' and o.address = p_user::text
    and o.lane = 'silence' and o.key = 'silence' and segment is not null;
end $$;

-- End the pause; silence counts from now. An active segment stays as it is.
create or replace function resume_segment(
  p_user uuid, p_epoch bigint, p_generation bigint, p_at timestamptz, p_idle double precision,
  out stale boolean, out segment uuid
) language plpgsql as $$
declare v_state text;
begin
  stale := not may_write(p_user, p_epoch, p_generation);
  if stale then return; end if;
  select s.id, s.state into segment, v_state from segments s
    where s.user_id = p_user and s.state in ('active', 'paused') for no key update;
  if v_state = 'paused' then
    update segments s set state = 'active', resumed_at = p_at where s.id = segment;
    perform watch_silence(p_user, segment, p_at + make_interval(secs => p_idle), p_at);
  end if;
end $$;
