-- Revision 1
-- The exchange of a process with limits that all replicas share: as limit_exchange(), on a connection of its own, so that
-- whoever waits for their meters keeps no other meter locked.
CREATE OR REPLACE FUNCTION limit_exchange_hot(
  p_process uuid, p_seq bigint, p_void interval, p_windows jsonb, p_holds jsonb, p_rates jsonb
) RETURNS jsonb LANGUAGE plpgsql SET lock_timeout = '800ms' AS $$
DECLARE
  v_processes bigint;
  v_windows jsonb;
  v_holds jsonb;
  v_rates jsonb;
BEGIN
  INSERT INTO limit_hot_process AS p (id, seq) VALUES (p_process, p_seq)
    ON CONFLICT (id) DO UPDATE SET seq = EXCLUDED.seq WHERE p.seq < EXCLUDED.seq;
  IF NOT FOUND THEN RETURN NULL; END IF;
  SELECT count(*) INTO v_processes FROM limit_process WHERE seen_at > clock_timestamp() - interval '15 s';
  SELECT jsonb_agg(x) INTO v_windows FROM limit_windows(p_windows) x;
  SELECT jsonb_agg(x) INTO v_holds FROM limit_take_holds(p_process, GREATEST(v_processes, 1), p_void, p_holds) x;
  SELECT jsonb_agg(x) INTO v_rates FROM limit_take_rates(GREATEST(v_processes, 1), p_rates) x;
  RETURN jsonb_build_object('processes', v_processes, 'windows', v_windows, 'holds', v_holds, 'rates', v_rates,
    'now', extract(epoch FROM clock_timestamp()) * 1000);
END $$;
