-- Revision 1
-- The exchange of a process with the ledger: one round trip, and each statement of the functions that it calls sees
-- what was committed before the lock that it waited for. (One statement that locks a meter and sums its holds would sum
-- those of an older snapshot.) Everyone locks in the same order: the process, then meters by primary key.
-- "p_void": the holds of a process that was not seen for so long are void.
-- "p_seq": of this message; null is returned if a newer one of the process was executed before, and nothing changes.
CREATE OR REPLACE FUNCTION limit_exchange(
  p_process uuid, p_seq bigint, p_void interval, p_windows jsonb, p_holds jsonb, p_rates jsonb
) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
  v_processes bigint;
  v_windows jsonb;
  v_holds jsonb;
  v_rates jsonb;
BEGIN
  INSERT INTO limit_process AS p (id, seq, seen_at) VALUES (p_process, p_seq, clock_timestamp())
    ON CONFLICT (id) DO UPDATE SET seq = EXCLUDED.seq, seen_at = EXCLUDED.seen_at WHERE p.seq < EXCLUDED.seq;
  IF NOT FOUND THEN RETURN NULL; END IF;
  SELECT count(*) INTO v_processes FROM limit_process WHERE seen_at > clock_timestamp() - interval '15 s';
  SELECT jsonb_agg(x) INTO v_windows FROM limit_windows(p_windows) x;
  SELECT jsonb_agg(x) INTO v_holds FROM limit_take_holds(p_process, v_processes, p_void, p_holds) x;
  SELECT jsonb_agg(x) INTO v_rates FROM limit_take_rates(v_processes, p_rates) x;
  RETURN jsonb_build_object('processes', v_processes, 'windows', v_windows, 'holds', v_holds, 'rates', v_rates,
    'now', extract(epoch FROM clock_timestamp()) * 1000);
END $$;
