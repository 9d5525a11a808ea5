-- Revision 2
-- For teams, keys and their secrets. The counters are locked as count_change() does.
CREATE OR REPLACE FUNCTION count_key_change() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  changed jsonb := to_jsonb(COALESCE(NEW, OLD));
  counted bigint;
BEGIN
  PERFORM FROM change_counter WHERE name IN ('keys', 'limits') ORDER BY name FOR NO KEY UPDATE;
  UPDATE change_counter SET value = value + 1 WHERE name = 'keys' RETURNING value INTO counted;
  PERFORM pg_notify('postern_keys', counted || ' ' || COALESCE(changed->>'key_id', changed->>'id'));
  RETURN NULL;
END $$;
