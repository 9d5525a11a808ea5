-- Revision 3
-- Removes what nobody needs: old slots, holds and meters without a rule, meters of past periods 7 days after their end,
-- and those of end users with rates that have no slot left. What is locked is left for the next time.
CREATE OR REPLACE FUNCTION limit_sweep() RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  DELETE FROM limit_slot WHERE slot < floor(extract(epoch FROM clock_timestamp()) / 2.5) - 40;
  -- Of rules that were removed while an exchange was under way.
  DELETE FROM limit_hold h USING (
    SELECT h.ctid FROM limit_hold h LEFT JOIN limit_rule r ON r.id = h.rule_id WHERE r.id IS NULL
    FOR UPDATE OF h SKIP LOCKED) unknown
  WHERE h.ctid = unknown.ctid;
  DELETE FROM limit_spent s WHERE NOT EXISTS (SELECT FROM limit_rule r WHERE r.id = s.rule_id);
  DELETE FROM limit_meter m USING (
    SELECT m.ctid FROM limit_meter m LEFT JOIN limit_rule r ON r.id = m.rule_id
    WHERE r.id IS NULL OR (m.held = 0 AND CASE
      WHEN r.period IN ('minute', 'at_once') THEN
        r.scope ~ '_(end_user|session)$'
          AND NOT EXISTS (SELECT FROM limit_slot s WHERE s.rule_id = m.rule_id AND s.subject = m.subject)
      WHEN r.period IN ('total', 'session') THEN false
      ELSE m.window_start + ('1 ' || r.period)::interval + interval '7 days' < clock_timestamp() END)
    FOR UPDATE OF m SKIP LOCKED) idle
  WHERE m.ctid = idle.ctid;
END $$;
