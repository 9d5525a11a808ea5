-- Revision 3
-- For any table with an id; the trigger's argument is the name of its counter. The counter's row is locked to the end
-- of the transaction: transactions are counted in the order of their commits. Those that change keys or limits are
-- counted at the commit, and the counters locked in one order, whichever was changed first.
CREATE OR REPLACE FUNCTION count_change() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  -- Once for each transaction: thousands of updates of one row in a transaction become slower and slower.
  counted text := NULLIF(current_setting('postern.counted_' || TG_ARGV[0], true), '');
BEGIN
  IF counted IS NULL THEN
    IF TG_ARGV[0] IN ('keys', 'limits') THEN
      PERFORM FROM change_counter WHERE name IN ('keys', 'limits') ORDER BY name FOR NO KEY UPDATE;
    END IF;
    UPDATE change_counter SET value = value + 1 WHERE name = TG_ARGV[0] RETURNING value INTO counted;
    PERFORM set_config('postern.counted_' || TG_ARGV[0], counted, true);
  END IF;
  PERFORM pg_notify('postern_' || TG_ARGV[0], counted || ' ' || COALESCE(NEW.id, OLD.id));
  RETURN NULL;
END $$;
