import type { MigrationInterface, QueryRunner } from 'typeorm';

/**
 * The exchange of a process with the ledger, as functions: one round trip, and each statement in them sees what was
 * committed before the lock that it waited for. (One statement that locks a meter and sums its holds would sum those of
 * an older snapshot.) Everyone locks in the same order: the process, then meters by primary key.
 */
export class LimitExchange1795600000001 implements MigrationInterface {
  async up(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`
      -- Null: a newer message of the process was executed before this one, which therefore changes nothing.
      CREATE FUNCTION limit_exchange(p_process uuid, p_seq bigint, p_void interval, p_windows jsonb, p_holds jsonb, p_rates jsonb)
      RETURNS jsonb LANGUAGE plpgsql AS $$
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

      -- For [period, time zone, time in ms] the start and end of the period that holds the time, in ms.
      CREATE FUNCTION limit_windows(p_asked jsonb) RETURNS SETOF jsonb LANGUAGE sql AS $$
        SELECT jsonb_build_array(period, zone, extract(epoch FROM starts) * 1000,
                                 extract(epoch FROM (starts AT TIME ZONE zone + ('1 ' || period)::interval) AT TIME ZONE zone) * 1000)
        FROM (SELECT a->>0 AS period, a->>1 AS zone,
                     date_trunc(a->>0, to_timestamp((a->>2)::numeric / 1000), a->>1) AS starts
              FROM jsonb_array_elements(p_asked) a) asked
      $$;

      -- Each entry states what the process must hold ("used": reserved, or used and not yet spent), what it retains
      -- ("kept", "used" included), and what it would like ("recent", what it used in a second; "waiting", what calls
      -- wait for; "one", what the first of them waits for).
      CREATE FUNCTION limit_take_holds(p_process uuid, p_processes bigint, p_void interval, p_entries jsonb)
      RETURNS SETOF jsonb LANGUAGE plpgsql AS $$
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
      BEGIN
        FOR e IN
          SELECT * FROM jsonb_to_recordset(p_entries) AS x (n int, rule uuid, subject text, starts bigint, used bigint,
            kept bigint, recent bigint, waiting bigint, one bigint, refused bigint, recall boolean)
          ORDER BY rule, subject, starts
        LOOP
          v_at := to_timestamp(e.starts / 1000);
          SELECT * INTO v_rule FROM limit_rule WHERE id = e.rule;
          IF NOT FOUND THEN CONTINUE; END IF;
          INSERT INTO limit_meter (rule_id, subject, window_start) VALUES (e.rule, e.subject, v_at) ON CONFLICT DO NOTHING;
          SELECT * INTO v_meter FROM limit_meter
            WHERE rule_id = e.rule AND subject = e.subject AND window_start = v_at FOR UPDATE;
          -- The rule is being removed.
          IF NOT FOUND THEN CONTINUE; END IF;
          SELECT amount INTO v_old FROM limit_hold
            WHERE rule_id = e.rule AND subject = e.subject AND window_start = v_at AND process = p_process;
          v_old := COALESCE(v_old, 0);
          -- What is used is a fact; what is kept counts only as far as nobody has voided it.
          v_base := GREATEST(e.used, LEAST(e.kept, v_old));
          v_free := v_rule.amount + v_meter.credited - v_meter.spent - (v_meter.held - v_old) - v_base;
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
          -- Near its end, a budget is handed out call by call.
          IF e.waiting = 0 AND v_free * 10 < v_rule.amount THEN v_wanted := 0; END IF;
          v_granted := 0;
          IF v_free > 0 AND v_free >= e.one THEN
            v_granted := LEAST(v_wanted, GREATEST(v_free / 2, e.one), v_free);
          END IF;

          v_recalled := e.recall AND v_granted < e.waiting AND v_meter.held - v_old - v_gone > 0;
          IF v_recalled THEN
            PERFORM pg_notify('postern_limit_recall', json_build_array(e.rule, e.subject, e.starts)::text);
          END IF;
          IF v_base + v_granted <> v_old THEN
            INSERT INTO limit_hold VALUES (e.rule, e.subject, v_at, p_process, v_base + v_granted)
              ON CONFLICT (rule_id, subject, window_start, process) DO UPDATE SET amount = EXCLUDED.amount;
            IF v_base + v_granted = 0 THEN
              DELETE FROM limit_hold
                WHERE rule_id = e.rule AND subject = e.subject AND window_start = v_at AND process = p_process;
            END IF;
          END IF;
          IF v_base + v_granted - v_gone <> v_old OR e.refused > 0 THEN
            UPDATE limit_meter SET held = held - v_gone - v_old + v_base + v_granted, refused = refused + e.refused
              WHERE rule_id = e.rule AND subject = e.subject AND window_start = v_at;
          END IF;
          RETURN NEXT jsonb_build_object('n', e.n, 'total', (v_base + v_granted)::text, 'free', (v_free - v_granted)::text,
            -- What would be free if the other processes returned everything.
            'most', (v_rule.amount + v_meter.credited - v_meter.spent - v_base - v_granted)::text,
            'spent', v_meter.spent::text, 'limit', (v_rule.amount + v_meter.credited)::text,
            'low', (v_free - v_granted) * 10 < v_rule.amount, 'recalled', v_recalled);
        END LOOP;
      END $$;

      -- A lease is granted while this slot of 5 seconds and the 12 before it, which hold any 60 seconds that end in it,
      -- stay within the limit. "changes" corrects slots: [slot, difference].
      CREATE FUNCTION limit_take_rates(p_processes bigint, p_entries jsonb) RETURNS SETOF jsonb LANGUAGE plpgsql AS $$
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
            one bigint, refused bigint, changes jsonb)
          ORDER BY rule, subject
        LOOP
          SELECT * INTO v_rule FROM limit_rule WHERE id = e.rule;
          IF NOT FOUND THEN CONTINUE; END IF;
          INSERT INTO limit_meter (rule_id, subject, window_start) VALUES (e.rule, e.subject, to_timestamp(0))
            ON CONFLICT DO NOTHING;
          SELECT * INTO v_meter FROM limit_meter
            WHERE rule_id = e.rule AND subject = e.subject AND window_start = to_timestamp(0) FOR UPDATE;
          IF NOT FOUND THEN CONTINUE; END IF;
          -- After the wait for the lock.
          v_slot := floor(extract(epoch FROM clock_timestamp()) / 5);
          INSERT INTO limit_slot AS s (rule_id, subject, slot, used)
            SELECT e.rule, e.subject, (c->>0)::bigint, 0 FROM jsonb_array_elements(e.changes) c
            WHERE (c->>0)::bigint > v_slot - 13 AND (c->>0)::bigint <= v_slot
            ON CONFLICT (rule_id, subject, slot) DO NOTHING;
          UPDATE limit_slot s SET used = GREATEST(s.used + (c->>1)::bigint, 0)
            FROM jsonb_array_elements(e.changes) c
            WHERE s.rule_id = e.rule AND s.subject = e.subject AND s.slot = (c->>0)::bigint;
          SELECT v_rule.amount - COALESCE(sum(used), 0), COALESCE(jsonb_agg(jsonb_build_array(slot, used) ORDER BY slot), '[]')
            INTO v_free, v_slots
            FROM limit_slot WHERE rule_id = e.rule AND subject = e.subject AND slot > v_slot - 13;
          v_wanted := GREATEST(LEAST(e.recent, v_free / (4 * p_processes)), e.waiting);
          IF e.waiting = 0 AND v_free * 10 < v_rule.amount THEN v_wanted := 0; END IF;
          v_granted := 0;
          IF v_free > 0 AND v_free >= e.one THEN
            v_granted := LEAST(v_wanted, GREATEST(v_free / 2, e.one), v_free);
          END IF;
          IF v_granted > 0 THEN
            INSERT INTO limit_slot AS s (rule_id, subject, slot, used) VALUES (e.rule, e.subject, v_slot, v_granted)
              ON CONFLICT (rule_id, subject, slot) DO UPDATE SET used = s.used + EXCLUDED.used;
          END IF;
          DELETE FROM limit_slot WHERE rule_id = e.rule AND subject = e.subject AND slot <= v_slot - 13;
          IF e.refused > 0 THEN
            UPDATE limit_meter SET refused = refused + e.refused
              WHERE rule_id = e.rule AND subject = e.subject AND window_start = to_timestamp(0);
          END IF;
          RETURN NEXT jsonb_build_object('n', e.n, 'granted', v_granted::text, 'free', (v_free - v_granted)::text,
            'slot', v_slot, 'slots', v_slots, 'limit', v_rule.amount::text,
            'low', (v_free - v_granted) * 10 < v_rule.amount);
        END LOOP;
      END $$;

      -- Returns everything that a process holds: it has ended, and its calls are charged or have no row.
      CREATE FUNCTION limit_forget(p_process uuid) RETURNS void LANGUAGE plpgsql AS $$
      DECLARE
        h limit_hold;
        v_amount bigint;
      BEGIN
        PERFORM FROM limit_process WHERE id = p_process FOR UPDATE;
        FOR h IN SELECT * FROM limit_hold WHERE process = p_process ORDER BY rule_id, subject, window_start LOOP
          PERFORM FROM limit_meter
            WHERE rule_id = h.rule_id AND subject = h.subject AND window_start = h.window_start FOR UPDATE;
          DELETE FROM limit_hold
            WHERE rule_id = h.rule_id AND subject = h.subject AND window_start = h.window_start AND process = p_process
            RETURNING amount INTO v_amount;
          IF FOUND THEN
            UPDATE limit_meter SET held = held - v_amount
              WHERE rule_id = h.rule_id AND subject = h.subject AND window_start = h.window_start;
          END IF;
        END LOOP;
        DELETE FROM limit_process WHERE id = p_process;
      END $$;

      -- Removes what nobody needs: old slots, meters without a rule, and meters of end users 7 days after their period.
      -- What is locked is left for the next time.
      CREATE FUNCTION limit_sweep() RETURNS void LANGUAGE plpgsql AS $$
      BEGIN
        DELETE FROM limit_slot WHERE slot < floor(extract(epoch FROM clock_timestamp()) / 5) - 20;
        DELETE FROM limit_meter m USING (
          SELECT m.ctid FROM limit_meter m LEFT JOIN limit_rule r ON r.id = m.rule_id
          WHERE r.id IS NULL OR (m.held = 0 AND r.scope IN ('team_end_user', 'key_end_user') AND CASE
            WHEN r.period IN ('minute', 'at_once') THEN
              NOT EXISTS (SELECT FROM limit_slot s WHERE s.rule_id = m.rule_id AND s.subject = m.subject)
            WHEN r.period = 'total' THEN false
            ELSE m.window_start + ('1 ' || r.period)::interval + interval '7 days' < clock_timestamp() END)
          FOR UPDATE OF m SKIP LOCKED) idle
        WHERE m.ctid = idle.ctid;
      END $$;
    `);
  }

  async down(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`
      DROP FUNCTION limit_exchange(uuid, bigint, interval, jsonb, jsonb, jsonb);
      DROP FUNCTION limit_take_holds(uuid, bigint, interval, jsonb);
      DROP FUNCTION limit_take_rates(bigint, jsonb);
      DROP FUNCTION limit_windows(jsonb);
      DROP FUNCTION limit_forget(uuid);
      DROP FUNCTION limit_sweep();
    `);
  }
}
