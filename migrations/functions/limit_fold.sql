-- Revision 1
-- Adds what was charged in parts to the meters, which raises their alerts: of one rule, or of all. Of all, what is locked is
-- left for the next time.
CREATE OR REPLACE FUNCTION limit_fold(p_rule uuid DEFAULT NULL) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  m record;
BEGIN
  FOR m IN SELECT DISTINCT r.rank, s.rule_id, s.subject, s.window_start
           FROM limit_spent s JOIN limit_rule r ON r.id = s.rule_id
           WHERE p_rule IS NULL OR r.id = p_rule ORDER BY 1, 2, 3, 4 LOOP
    INSERT INTO limit_meter (rule_id, subject, window_start) VALUES (m.rule_id, m.subject, m.window_start)
      ON CONFLICT DO NOTHING;
    -- As settlements do: the meter first, then its parts.
    IF p_rule IS NULL THEN
      PERFORM FROM limit_meter
        WHERE (rule_id, subject, window_start) = (m.rule_id, m.subject, m.window_start) FOR UPDATE SKIP LOCKED;
      CONTINUE WHEN NOT FOUND;
    ELSE
      PERFORM FROM limit_meter
        WHERE (rule_id, subject, window_start) = (m.rule_id, m.subject, m.window_start) FOR UPDATE;
    END IF;
    WITH parts AS (
      DELETE FROM limit_spent WHERE (rule_id, subject, window_start) = (m.rule_id, m.subject, m.window_start)
      RETURNING spent, admitted_at)
    UPDATE limit_meter l
      SET spent = LEAST(l.spent::numeric + p.spent, 4000000000000000000)::bigint,
          admitted_at = GREATEST(l.admitted_at, p.admitted_at)
      FROM (SELECT sum(spent) AS spent, max(admitted_at) AS admitted_at FROM parts) p
      WHERE (rule_id, subject, window_start) = (m.rule_id, m.subject, m.window_start) AND p.spent IS NOT NULL;
  END LOOP;
END $$;
