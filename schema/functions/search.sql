-- Whether a user has memories that can be found: what every search asks of those that everybody
-- shares, as a call that is its own transaction.
create or replace function has_memories(p_user uuid) returns boolean language plpgsql as $$
begin
  return exists (select from corpora where user_id = p_user and source = 1 and documents > 0);
end $$;
