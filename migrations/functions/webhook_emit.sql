-- Revision 1
-- Stores an event for the webhooks that have subscribed to its type; without one, nothing.
CREATE OR REPLACE FUNCTION webhook_emit(p_type text, p_data jsonb, p_once text DEFAULT NULL) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
  v_event uuid;
BEGIN
  IF NOT EXISTS (SELECT FROM webhook WHERE p_type = ANY (events)) THEN RETURN; END IF;
  INSERT INTO webhook_event (id, type, data, once) VALUES (gen_random_uuid(), p_type, p_data, p_once)
    ON CONFLICT (once) DO NOTHING RETURNING id INTO v_event;
  IF v_event IS NULL THEN RETURN; END IF;
  INSERT INTO webhook_delivery (webhook_id, event_id)
    SELECT id, v_event FROM webhook WHERE p_type = ANY (events) ORDER BY id;
END $$;
