-- Revision 2
-- Creates and locks a meter. Null: its rule is being removed, or another transaction keeps it locked. An exchange waits
-- 100 ms for the first such meter, longer than settlements and other exchanges take, and hardly for others, so that all
-- that it can take is taken before the process gives up.
-- "p_skip" null: a process of an earlier version, which waits for each meter.
CREATE OR REPLACE FUNCTION limit_lock_meter(p_rule uuid, p_subject text, p_at timestamptz, p_skip boolean)
RETURNS limit_meter LANGUAGE plpgsql AS $$
DECLARE
  v_meter limit_meter;
BEGIN
  SELECT * INTO v_meter FROM limit_meter
    WHERE rule_id = p_rule AND subject = p_subject AND window_start = p_at FOR UPDATE SKIP LOCKED;
  IF FOUND THEN RETURN v_meter; END IF;
  IF p_skip AND current_setting('lock_timeout') NOT IN ('1ms', '800ms') THEN
    PERFORM set_config('lock_timeout', '100ms', true);
  END IF;
  BEGIN
    INSERT INTO limit_meter (rule_id, subject, window_start) VALUES (p_rule, p_subject, p_at) ON CONFLICT DO NOTHING;
    SELECT * INTO v_meter FROM limit_meter
      WHERE rule_id = p_rule AND subject = p_subject AND window_start = p_at FOR UPDATE;
  EXCEPTION WHEN lock_not_available THEN
    IF p_skip IS NULL THEN RAISE; END IF;
    PERFORM set_config('lock_timeout', '1ms', true);
  END;
  RETURN v_meter;
END $$;
