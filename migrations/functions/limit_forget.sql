-- Revision 2
-- Returns everything that a process holds: it has ended, and its calls are charged or have no row. What is locked is
-- left for the next attempt.
CREATE OR REPLACE FUNCTION limit_forget(p_process uuid) RETURNS void LANGUAGE plpgsql SET lock_timeout = '1s' AS $$
DECLARE
  h limit_hold;
  v_amount bigint;
BEGIN
  PERFORM FROM limit_process WHERE id = p_process FOR UPDATE;
  FOR h IN SELECT l.* FROM limit_hold l LEFT JOIN limit_rule r ON r.id = l.rule_id
           WHERE l.process = p_process ORDER BY r.rank, l.rule_id, l.subject, l.window_start LOOP
    PERFORM FROM limit_meter
      WHERE rule_id = h.rule_id AND subject = h.subject AND window_start = h.window_start FOR UPDATE;
    DELETE FROM limit_hold
      WHERE rule_id = h.rule_id AND subject = h.subject AND window_start = h.window_start AND process = p_process
      RETURNING amount INTO v_amount;
    IF FOUND THEN
      UPDATE limit_meter SET held = held - v_amount
        WHERE rule_id = h.rule_id AND subject = h.subject AND window_start = h.window_start;
    END IF;
  END LOOP;
  DELETE FROM limit_hot_process WHERE id = p_process;
  DELETE FROM limit_process WHERE id = p_process;
END $$;
