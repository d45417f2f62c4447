-- How much a memory matters, 0 to 1: the one definition. mira/memory/scoring.py mirrors it to
-- explain a score term by term.
--
-- p_use_days counts the days on which the user has spoken: decay runs on them. Dates of the world
-- (p_happens_at, p_expires_at) run on the calendar (p_now). p_links: links that lead here;
-- p_entities: for each entity of the memory, how many others share it, by the weight of its type.
--
-- p_form: 'score' goes to 0 for what earns nothing; 'compat' has the same order and a floor of
-- 0.119, above which it can never sink; 'compat_v1' is the oldest form, for comparison.
create or replace function memory_score(
  p_use_days integer, p_use_day_created integer, p_use_day_accessed integer,
  p_access_count integer, p_mention_count integer, p_links bigint, p_entities double precision,
  p_happens_at timestamptz, p_expires_at timestamptz, p_now timestamptz,
  p_form text default 'score'
) returns double precision language plpgsql immutable parallel safe as $$
declare
  v_age integer := greatest(0, p_use_days - p_use_day_created);
  v_idle integer := greatest(0, p_use_days - coalesce(p_use_day_accessed, p_use_day_created));
  v_value double precision;
  v_hub double precision;
  v_raw double precision;
  v_recency double precision;
  v_temporal double precision := 1;
  v_trail_off double precision := 1;
  v_days double precision;
  v_x double precision;
  v_sigmoid double precision;
  c_floor constant double precision := 1 / (1 + exp(2.0::double precision));
begin
  -- Bounded, since power() raises where a number becomes too small to be written.
  v_value := 0.8 * ln(1 + (p_access_count * power(0.95::double precision, least(v_idle, 10000))
                           / greatest(7, v_age)) / 0.02);
  v_hub := case when p_links <= 10 then 0.04 * p_links
                else 0.4 + 0.02 * (p_links - 10) / (1 + 0.05 * (p_links - 10)) end;
  v_raw := v_value + v_hub;
  v_recency := 1 / (1 + 0.03 * v_idle);
  if p_form <> 'compat_v1' then
    v_raw := v_raw
      + case when p_entities <= 50 then 0.005 * p_entities
             else 0.25 + 0.075 * ln(p_entities / 50) end
      + case when p_mention_count <= 5 then 0.08 * p_mention_count
             else 0.4 + 0.1 * ln(1.0 + p_mention_count - 5)::double precision end
      + greatest(0, 2.0 - 0.133 * v_age);
    v_recency := 1 / (1 + 0.015 * v_idle);
  end if;

  if p_happens_at is not null then
    v_days := extract(epoch from p_happens_at - p_now)::double precision / 86400;
    v_temporal := case
      when v_days < 0 and p_form = 'compat_v1' then
        case when v_days >= -14 then 0.8 * (1 + v_days / 14) + 0.1 else 0.1 end
      when v_days < 0 then
        case when v_days >= -45 then 0.4 * (1 + v_days / 45) + 0.4 else 0.4 end
      when v_days <= 1 then 2.0
      when v_days <= 7 then 1.5
      when v_days <= 14 then 1.2
      else 1 end;
  end if;
  if p_expires_at is not null and p_now > p_expires_at then
    v_days := extract(epoch from p_now - p_expires_at)::double precision / 86400;
    if p_form = 'compat_v1' or v_days >= 5 then return 0; end if;
    v_trail_off := 1 - v_days / 5;
  end if;

  v_x := v_raw * v_recency * v_temporal * v_trail_off;
  v_sigmoid := 1 / (1 + exp(2 - v_x));
  if p_form = 'score' then
    return greatest(0, (v_sigmoid - c_floor) / (1 - c_floor));
  end if;
  return v_sigmoid;
end $$;

-- What an entity of this type weighs in a memory's score.
create or replace function entity_weight(p_type text) returns double precision
language sql immutable parallel safe
return case p_type
  when 'PERSON' then 1.0 when 'EVENT' then 0.9 when 'ORG' then 0.8 when 'PRODUCT' then 0.7
  when 'WORK_OF_ART' then 0.6 when 'FAC' then 0.4 when 'LANGUAGE' then 0.3 else 0.5 end;

-- What the score of some of a user's memories is made of, and the score, at p_now. Only what is
-- active counts: links that come from it, and entities that it shares.
create or replace function memory_scores_at(p_user uuid, p_ids uuid[], p_now timestamptz)
returns table (memory_id uuid, links bigint, entities double precision, score double precision)
language sql stable as $$
  with own as materialized (
    select x.memory_id, x.entity_id, e.type
    from memory_entities x join entities e on e.id = x.entity_id
    where x.memory_id = any(p_ids)),
  shared as materialized (
    select o.entity_id, count(*) as memories
    from (select distinct entity_id from own) o
    join memory_entities x on x.entity_id = o.entity_id
    join memories m on m.id = x.memory_id and m.status = 'active'
    group by 1),
  entity_hubs as (
    select o.memory_id, sum(s.memories * entity_weight(o.type)) as together,
      sum(entity_weight(o.type)) as alone
    from own o join shared s using (entity_id) group by 1),
  hubs as (
    select l.to_id, count(*) as links
    from memory_links l join memories m on m.id = l.from_id and m.status = 'active'
    where l.to_id = any(p_ids) group by 1)
  select m.id, coalesce(h.links, 0), w.shared,
    memory_score(c.use_days, s.use_day_created, s.use_day_accessed, s.access_count,
      s.mention_count, coalesce(h.links, 0), w.shared, m.happens_at, m.expires_at, p_now)
  from memories m
  join memory_scores s on s.memory_id = m.id
  left join entity_hubs e on e.memory_id = m.id
  left join hubs h on h.to_id = m.id
  cross join lateral (select coalesce(
    e.together - case when m.status = 'active' then e.alone else 0 end, 0)) as w(shared)
  cross join (select coalesce((select use_days from conversations where user_id = p_user), 0))
    as c(use_days)
  where m.user_id = p_user and m.id = any(p_ids)
$$;

-- Calculate the scores of a user's active memories anew: of all, or of those with a date near
-- p_now (from 7 days ago to 30 days ahead). Writes only what has changed; returns how many.
-- Notes since when a score has been under the floor, except for what is still to happen: its
-- time comes, however long nobody has spoken of it.
create or replace function recalculate_memories(
  p_user uuid, p_now timestamptz, p_dated boolean default false, p_floor double precision default 0.02
) returns integer language plpgsql as $$
declare
  v_days integer := coalesce((select use_days from conversations where user_id = p_user), 0);
  v_changed integer;
begin
  with active as materialized (
    select m.id, m.happens_at, m.expires_at from memories m
    where m.user_id = p_user and m.status = 'active'),
  shared as materialized (
    select x.entity_id, count(*) as memories
    from memory_entities x join active a on a.id = x.memory_id
    where x.user_id = p_user group by 1),
  entity_hubs as materialized (
    select x.memory_id, sum((s.memories - 1) * entity_weight(e.type)) as shared
    from memory_entities x join shared s using (entity_id) join entities e on e.id = x.entity_id
    where x.user_id = p_user group by 1),
  hubs as materialized (
    select l.to_id, count(*) as links
    from memory_links l join active a on a.id = l.from_id
    where l.user_id = p_user group by 1),
  fresh as materialized (
    select s.memory_id, s.importance, s.below_since_use_day as below,
      a.happens_at > p_now is true as ahead, coalesce(e.shared, 0) as shared,
      s.shared_entities as shared_before,
      memory_score(v_days, s.use_day_created, s.use_day_accessed, s.access_count, s.mention_count,
        coalesce(h.links, 0), coalesce(e.shared, 0), a.happens_at, a.expires_at, p_now)::real
        as score
    from active a
    join memory_scores s on s.memory_id = a.id
    left join entity_hubs e on e.memory_id = a.id
    left join hubs h on h.to_id = a.id
    where not p_dated
       or a.happens_at between p_now - interval '7 days' and p_now + interval '30 days'
       or a.expires_at between p_now - interval '7 days' and p_now + interval '30 days')
  update memory_scores s
    set importance = f.score, shared_entities = f.shared,
        below_since_use_day = case when f.score < p_floor and not f.ahead
                                   then coalesce(f.below, v_days) end
    from fresh f
    where s.memory_id = f.memory_id
      and (f.importance <> f.score or f.shared <> f.shared_before
           or (f.score < p_floor and not f.ahead) <> (f.below is not null));
  get diagnostics v_changed = row_count;
  return v_changed;
end $$;
