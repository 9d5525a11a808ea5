-- Revision 2
-- Announces a threshold, and that a budget is exhausted: all of it is spent, or a call was rejected. Once per meter,
-- because the meter is marked in the same transaction.
CREATE OR REPLACE FUNCTION limit_meter_alert() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  v_rule limit_rule;
  v_used numeric := NEW.spent::numeric - NEW.credited;
  v_reached smallint;
  v_crossed boolean;
  v_exhausted boolean;
  v_data jsonb;
  v_ends timestamptz;
  v_owner uuid;
BEGIN
  SELECT * INTO v_rule FROM limit_rule WHERE id = NEW.rule_id;
  IF NOT FOUND OR v_rule.period IN ('minute', 'at_once') THEN RETURN NULL; END IF;
  v_reached := limit_threshold(v_used, v_rule.amount, v_rule.alert_at);
  v_crossed := COALESCE(v_reached > NEW.alerted, false);
  v_exhausted := NEW.exhausted_at IS NULL
    AND (v_used >= v_rule.amount OR (TG_OP = 'UPDATE' AND NEW.refused > OLD.refused));
  IF NOT (v_crossed OR v_exhausted) THEN RETURN NULL; END IF;
  v_owner := COALESCE(v_rule.owner_id, v_rule.scope_id);
  v_ends := CASE WHEN v_rule.period NOT IN ('total', 'session')
    THEN (limit_window(v_rule.period, v_rule.time_zone, NEW.window_start)).ends END;
  -- A row that comes late has brought the meter back, which has the charge of that row only.
  IF v_ends < clock_timestamp() - interval '7 days' THEN RETURN NULL; END IF;
  BEGIN
    UPDATE limit_meter
      SET alerted = GREATEST(alerted, v_reached),
          exhausted_at = CASE WHEN v_exhausted THEN clock_timestamp() ELSE exhausted_at END
      WHERE (rule_id, subject, window_start) = (NEW.rule_id, NEW.subject, NEW.window_start);
    SELECT jsonb_build_object('limit_id', v_rule.id, 'scope', v_rule.scope,
        'group', (SELECT name FROM team_group WHERE id = v_owner), 'team', t.name, 'team_id', t.id,
        'key', k.name, 'key_id', k.id, 'subject', NULLIF(NEW.subject, ''), 'resource', v_rule.resource,
        'providers', v_rule.providers, 'models', v_rule.models, 'period', v_rule.period, 'mode', v_rule.mode, 'amount', v_rule.amount::text,
        'used', v_used::text, 'threshold', v_reached,
        'resets_at', extract(epoch FROM v_ends) * 1000)
      INTO v_data
      FROM (SELECT) one
      LEFT JOIN gateway_key k ON k.id = v_owner
      LEFT JOIN team t ON t.id = COALESCE(k.team_id, v_owner);
    IF v_crossed THEN PERFORM limit_emit('budget.threshold', v_data); END IF;
    IF v_exhausted THEN PERFORM limit_emit('budget.exhausted', v_data); END IF;
  EXCEPTION WHEN OTHERS THEN
    -- Charges have priority. The meter is not marked, so the next charge tries again.
    RAISE WARNING 'the alert of limit % could not be stored: %', NEW.rule_id, SQLERRM;
  END;
  RETURN NULL;
END $$;
