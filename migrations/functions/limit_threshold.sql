-- Revision 1
-- The largest threshold of a budget that was reached; null: none.
CREATE OR REPLACE FUNCTION limit_threshold(p_used numeric, p_amount bigint, p_alert_at smallint[]) RETURNS smallint
LANGUAGE sql IMMUTABLE AS $$
  SELECT max(at) FROM unnest(p_alert_at) at WHERE p_used * 100 >= at * p_amount::numeric
$$;
