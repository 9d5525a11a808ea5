-- Revision 3
-- For teams, keys and their secrets. It counts as count_change() does.
CREATE OR REPLACE FUNCTION count_key_change() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  changed jsonb := to_jsonb(COALESCE(NEW, OLD));
  counted text := NULLIF(current_setting('postern.counted_keys', true), '');
BEGIN
  IF counted IS NULL THEN
    PERFORM FROM change_counter WHERE name IN ('keys', 'limits') ORDER BY name FOR NO KEY UPDATE;
    UPDATE change_counter SET value = value + 1 WHERE name = 'keys' RETURNING value INTO counted;
    PERFORM set_config('postern.counted_keys', counted, true);
  END IF;
  PERFORM pg_notify('postern_keys', counted || ' ' || COALESCE(changed->>'key_id', changed->>'id'));
  RETURN NULL;
END $$;
