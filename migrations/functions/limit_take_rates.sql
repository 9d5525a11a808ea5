-- Revision 2
-- Grants leases of limits per minute: while this slot of 2.5 seconds and the 25 before it, which hold any 62.5 seconds
-- that end in it, stay within the limit. "changes" corrects slots: [slot, difference]. The other members are those of
-- limit_take_holds().
CREATE OR REPLACE FUNCTION limit_take_rates(p_processes bigint, p_entries jsonb) RETURNS SETOF jsonb
LANGUAGE plpgsql AS $$
DECLARE
  e record;
  v_rule limit_rule;
  v_meter limit_meter;
  v_slot bigint;
  v_free bigint;
  v_wanted bigint;
  v_granted bigint;
  v_slots jsonb;
BEGIN
  FOR e IN
    SELECT * FROM jsonb_to_recordset(p_entries) AS x (n int, rule uuid, subject text, recent bigint, waiting bigint,
      one bigint, refused bigint, changes jsonb, skip boolean, needed bigint, ago bigint)
    ORDER BY rule, subject
  LOOP
    SELECT * INTO v_rule FROM limit_rule WHERE id = e.rule;
    IF NOT FOUND THEN CONTINUE; END IF;
    v_meter := limit_lock_meter(e.rule, e.subject, to_timestamp(0), e.skip);
    IF v_meter.rule_id IS NULL THEN CONTINUE; END IF;
    -- After the wait for the lock.
    v_slot := floor(extract(epoch FROM clock_timestamp()) / 2.5);
    INSERT INTO limit_slot AS s (rule_id, subject, slot, used)
      SELECT e.rule, e.subject, (c->>0)::bigint, 0 FROM jsonb_array_elements(e.changes) c
      WHERE (c->>0)::bigint > v_slot - 26 AND (c->>0)::bigint <= v_slot
      ON CONFLICT (rule_id, subject, slot) DO NOTHING;
    UPDATE limit_slot s SET used = GREATEST(s.used + (c->>1)::bigint, 0)
      FROM jsonb_array_elements(e.changes) c
      WHERE s.rule_id = e.rule AND s.subject = e.subject AND s.slot = (c->>0)::bigint;
    SELECT v_rule.amount - COALESCE(sum(used), 0),
           COALESCE(jsonb_agg(jsonb_build_array(slot, used) ORDER BY slot), '[]')
      INTO v_free, v_slots
      FROM limit_slot WHERE rule_id = e.rule AND subject = e.subject AND slot > v_slot - 26;
    v_wanted := GREATEST(LEAST(e.recent, v_free / (4 * p_processes)), e.waiting);
    IF e.waiting = 0 AND v_free < (v_rule.amount + 9) / 10 THEN v_wanted := 0; END IF;
    v_granted := 0;
    IF v_free > 0 AND v_free >= e.one THEN
      v_granted := LEAST(v_wanted, GREATEST(v_free / 2, e.one), v_free);
    END IF;
    IF v_granted > 0 THEN
      INSERT INTO limit_slot AS s (rule_id, subject, slot, used) VALUES (e.rule, e.subject, v_slot, v_granted)
        ON CONFLICT (rule_id, subject, slot) DO UPDATE SET used = s.used + EXCLUDED.used;
    END IF;
    DELETE FROM limit_slot WHERE rule_id = e.rule AND subject = e.subject AND slot <= v_slot - 26;
    IF e.refused > 0 THEN
      UPDATE limit_meter SET refused = refused + e.refused, refused_needed = e.needed,
          refused_at = clock_timestamp() - make_interval(secs => COALESCE(e.ago, 0) / 1000.0)
        WHERE rule_id = e.rule AND subject = e.subject AND window_start = to_timestamp(0);
    END IF;
    RETURN NEXT jsonb_build_object('n', e.n, 'granted', v_granted::text, 'free', (v_free - v_granted)::text,
      'slot', v_slot, 'slots', v_slots, 'limit', v_rule.amount::text,
      'low', v_free - v_granted < (v_rule.amount + 9) / 10);
  END LOOP;
END $$;
