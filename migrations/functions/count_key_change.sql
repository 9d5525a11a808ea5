-- Revision 1
-- For teams, keys and their secrets. The counter's row is locked to the end of the transaction: changes are counted in
-- the order of their commits.
CREATE OR REPLACE FUNCTION count_key_change() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  changed jsonb := to_jsonb(COALESCE(NEW, OLD));
  counted bigint;
BEGIN
  UPDATE change_counter SET value = value + 1 WHERE name = 'keys' RETURNING value INTO counted;
  PERFORM pg_notify('postern_keys', counted || ' ' || COALESCE(changed->>'key_id', changed->>'id'));
  RETURN NULL;
END $$;
