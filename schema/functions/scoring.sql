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
  v_value := 0.8 * ln(1 + (p_access_count * power(0.95::double precision, v_idle)
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
    if p_form = 'compat_v1' or v_days > 5 then return 0; end if;
    v_trail_off := greatest(0, 1 - v_days / 5);
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
