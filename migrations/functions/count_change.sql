-- Revision 2
-- For any table with an id; the trigger's argument is the name of its counter. The counter's row is locked to the end
-- of the transaction: changes are counted in the order of their commits. Those of keys and of limits are counted at the
-- commit, and locked in one order, whichever was changed first.
CREATE OR REPLACE FUNCTION count_change() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  counted bigint;
BEGIN
  IF TG_ARGV[0] IN ('keys', 'limits') THEN
    PERFORM FROM change_counter WHERE name IN ('keys', 'limits') ORDER BY name FOR NO KEY UPDATE;
  END IF;
  UPDATE change_counter SET value = value + 1 WHERE name = TG_ARGV[0] RETURNING value INTO counted;
  PERFORM pg_notify('postern_' || TG_ARGV[0], counted || ' ' || COALESCE(NEW.id, OLD.id));
  RETURN NULL;
END $$;
