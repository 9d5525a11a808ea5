-- Revision 1
-- A larger budget announces its thresholds again that are no longer reached.
CREATE OR REPLACE FUNCTION limit_rule_raised() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM FROM limit_meter WHERE rule_id = NEW.id AND (alerted > 0 OR exhausted_at IS NOT NULL)
    ORDER BY rule_id, subject, window_start FOR UPDATE;
  UPDATE limit_meter SET exhausted_at = NULL, alerted = LEAST(alerted,
      COALESCE(limit_threshold(spent::numeric - credited, NEW.amount, NEW.alert_at), 0))
    WHERE rule_id = NEW.id AND (alerted > 0 OR exhausted_at IS NOT NULL);
  RETURN NULL;
END $$;
