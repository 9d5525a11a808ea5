-- Revision 1
-- Stores an alert of a budget; of the end users of a budget, 50 of each kind in 24 hours.
CREATE OR REPLACE FUNCTION limit_emit(p_type text, p_data jsonb) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  IF p_data->>'subject' IS NOT NULL AND 50 <= (
    SELECT count(*) FROM webhook_event
    WHERE type = p_type AND created_at > clock_timestamp() - interval '24 hours'
      AND data->>'limit_id' = p_data->>'limit_id') THEN RETURN; END IF;
  PERFORM webhook_emit(p_type, p_data);
END $$;
