-- Revision 3
-- Takes and returns holds of budgets. Each entry states what the process must hold and would like:
-- - "used": reserved, or used and not yet spent; "kept": what it retains, "used" included;
-- - "recent": what it used in a second; "waiting": what calls wait for; "one": what the first of them waits for;
-- - "refused": calls rejected since the last exchange, "needed": what the last of them would have used, "ago": how many
--   milliseconds ago; processes of an earlier version do not state the last two; "recall": the others are to return what they do not use;
-- - "busy": reserved by calls under way or that wait; processes of an earlier version do not state it;
-- - "since": milliseconds since this process has called back what the others do not use;
-- - "gone": a process that was not seen for so many milliseconds is not expected back;
-- - "skip": a meter that another transaction keeps locked gets no result; processes of an earlier version wait for it.
CREATE OR REPLACE FUNCTION limit_take_holds(
  p_process uuid, p_processes bigint, p_void interval, p_entries jsonb
) RETURNS SETOF jsonb LANGUAGE plpgsql AS $$
DECLARE
  e record;
  v_rule limit_rule;
  v_meter limit_meter;
  v_at timestamptz;
  v_old bigint;
  v_base bigint;
  v_gone bigint;
  v_free bigint;
  v_wanted bigint;
  v_granted bigint;
  v_recalled boolean;
  v_busy bigint;
  v_loose bigint;
  v_spent bigint;
  v_end bigint;
BEGIN
  FOR e IN
    SELECT x.* FROM jsonb_to_recordset(p_entries) AS x (n int, rule uuid, subject text, starts bigint, used bigint,
      kept bigint, recent bigint, waiting bigint, one bigint, refused bigint, recall boolean, busy bigint, since bigint,
      gone bigint, skip boolean, needed bigint, ago bigint)
    LEFT JOIN limit_rule r ON r.id = x.rule
    ORDER BY r.rank, rule, subject, starts
  LOOP
    v_at := to_timestamp(e.starts / 1000);
    SELECT * INTO v_rule FROM limit_rule WHERE id = e.rule;
    IF NOT FOUND THEN CONTINUE; END IF;
    -- Near its end, a budget is handed out call by call: the last tenth, or hundredth of one that many replicas share,
    -- since each call waits for an exchange then.
    v_end := (v_rule.amount + 9) / CASE v_rule.rank WHEN 0 THEN 10 ELSE 100 END;
    -- An end user who has used nothing, and whose call needs more than there ever is: whoever makes names up gets no
    -- row.
    IF e.subject <> '' AND e.used = 0 AND e.kept = 0 AND e.recent = 0 AND (e.waiting = 0 OR e.one > v_rule.amount)
       AND NOT EXISTS (SELECT FROM limit_meter m
                       WHERE m.rule_id = e.rule AND m.subject = e.subject AND m.window_start = v_at) THEN
      RETURN NEXT jsonb_build_object('n', e.n, 'total', '0', 'free', v_rule.amount::text, 'most', v_rule.amount::text,
        'spent', '0', 'limit', v_rule.amount::text, 'low', false, 'recalled', false, 'loose', '0');
      CONTINUE;
    END IF;
    v_meter := limit_lock_meter(e.rule, e.subject, v_at, e.skip);
    IF v_meter.rule_id IS NULL THEN CONTINUE; END IF;
    -- After the wait for the lock: an amount leaves a hold only after its part was committed.
    v_spent := v_meter.spent;
    IF v_rule.rank > 0 THEN
      SELECT v_spent + COALESCE(sum(spent), 0) INTO v_spent FROM limit_spent
        WHERE rule_id = e.rule AND subject = e.subject AND window_start = v_at;
    END IF;
    SELECT amount, busy INTO v_old, v_busy FROM limit_hold
      WHERE rule_id = e.rule AND subject = e.subject AND window_start = v_at AND process = p_process;
    v_old := COALESCE(v_old, 0);
    -- What is used is a fact; what is kept counts only as far as nobody has voided it.
    v_base := GREATEST(e.used, LEAST(e.kept, v_old));
    v_free := v_rule.amount + v_meter.credited - v_spent - (v_meter.held - v_old) - v_base;
    v_gone := 0;
    IF v_free < e.waiting AND v_meter.held > v_old THEN
      WITH gone AS (
        DELETE FROM limit_hold h USING limit_process p
        WHERE h.rule_id = e.rule AND h.subject = e.subject AND h.window_start = v_at
          AND h.process = p.id AND p.id <> p_process
          AND p.seen_at < clock_timestamp()
            - CASE v_rule.resource WHEN 'concurrent_requests' THEN interval '15 s' ELSE p_void END
        RETURNING h.amount)
      SELECT COALESCE(sum(amount), 0) INTO v_gone FROM gone;
      v_free := v_free + v_gone;
    END IF;

    v_wanted := GREATEST(LEAST(e.recent, v_free / (4 * p_processes)), e.waiting);
    IF e.waiting = 0 AND v_free < v_end THEN v_wanted := 0; END IF;
    v_granted := 0;
    IF v_free > 0 AND v_free >= e.one THEN
      v_granted := LEAST(v_wanted, GREATEST(v_free / 2, e.one), v_free);
    END IF;

    v_recalled := e.recall AND v_granted < e.waiting AND v_meter.held - v_old - v_gone > 0;
    IF v_recalled THEN
      PERFORM pg_notify('postern_limit_recall', json_build_array(e.rule, e.subject, e.starts)::text);
    END IF;
    IF v_base + v_granted <> v_old OR v_busy <> e.busy THEN
      INSERT INTO limit_hold
        VALUES (e.rule, e.subject, v_at, p_process, v_base + v_granted, COALESCE(e.busy, v_base + v_granted))
        ON CONFLICT (rule_id, subject, window_start, process)
          DO UPDATE SET amount = EXCLUDED.amount, busy = EXCLUDED.busy;
      IF v_base + v_granted = 0 THEN
        DELETE FROM limit_hold
          WHERE rule_id = e.rule AND subject = e.subject AND window_start = v_at AND process = p_process;
      END IF;
    END IF;
    IF v_base + v_granted - v_gone <> v_old OR e.refused > 0 THEN
      UPDATE limit_meter SET held = held - v_gone - v_old + v_base + v_granted, refused = refused + e.refused,
          refused_at = CASE WHEN e.refused > 0
            THEN clock_timestamp() - make_interval(secs => COALESCE(e.ago, 0) / 1000.0) ELSE refused_at END,
          refused_needed = CASE WHEN e.refused > 0 THEN e.needed ELSE refused_needed END
        WHERE rule_id = e.rule AND subject = e.subject AND window_start = v_at;
    END IF;
    -- What the others may still return: what their calls do not use, and everything that a process holds which was not
    -- seen since it was called back. Processes are seen every 3 seconds.
    v_loose := 0;
    IF e.since IS NOT NULL AND v_granted < e.waiting THEN
      SELECT COALESCE(sum(CASE
        WHEN p.seen_at < clock_timestamp() - make_interval(secs => LEAST(e.since, 4000) / 1000.0) THEN h.amount
        ELSE GREATEST(h.amount - h.busy, 0) END), 0) INTO v_loose
      FROM limit_hold h JOIN limit_process p ON p.id = h.process
      WHERE h.rule_id = e.rule AND h.subject = e.subject AND h.window_start = v_at AND h.process <> p_process
        AND p.seen_at > clock_timestamp() - make_interval(secs => e.gone / 1000.0);
    END IF;
    RETURN NEXT jsonb_build_object('n', e.n, 'total', (v_base + v_granted)::text, 'free', (v_free - v_granted)::text,
      -- What would be free if the other processes returned everything.
      'most', (v_rule.amount + v_meter.credited - v_spent - v_base - v_granted)::text,
      'spent', v_spent::text, 'limit', (v_rule.amount + v_meter.credited)::text,
      'low', v_free - v_granted < v_end, 'recalled', v_recalled, 'loose', v_loose::text);
  END LOOP;
END $$;
