import type { MigrationInterface, QueryRunner } from 'typeorm';

/**
 * Webhooks, and the outbox of their events. An event and its deliveries are stored in the transaction of what caused it:
 * alerts of budgets by triggers on the meters, which the log writer's settlement and the exchanges change.
 */
export class Webhooks1795700000000 implements MigrationInterface {
  async up(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`
      CREATE TABLE webhook (
        id uuid CONSTRAINT webhook_pkey PRIMARY KEY,
        -- Without what may be secret in it. The whole URL is part of "sealed".
        shown_url text NOT NULL,
        events text[] NOT NULL,
        format text NOT NULL CONSTRAINT webhook_format_check CHECK (format IN ('standard', 'slack')),
        sealed bytea NOT NULL,
        version int NOT NULL DEFAULT 1,
        created_at timestamptz NOT NULL DEFAULT now(),
        updated_at timestamptz NOT NULL DEFAULT now()
      );

      CREATE TABLE webhook_event (
        id uuid CONSTRAINT webhook_event_pkey PRIMARY KEY,
        type text NOT NULL,
        created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
        data jsonb NOT NULL,
        -- Identifies an event that must not occur twice.
        once text CONSTRAINT webhook_event_once_key UNIQUE
      );
      CREATE INDEX webhook_event_created_at_idx ON webhook_event (created_at);

      CREATE TABLE webhook_delivery (
        webhook_id uuid CONSTRAINT webhook_delivery_webhook_id_fkey REFERENCES webhook ON DELETE CASCADE,
        event_id uuid CONSTRAINT webhook_delivery_event_id_fkey REFERENCES webhook_event ON DELETE CASCADE,
        attempts smallint NOT NULL DEFAULT 0,
        -- Null: it was delivered, or the last attempt failed. Set before an attempt, so that another process repeats
        -- the attempt of one that died.
        next_attempt_at timestamptz DEFAULT clock_timestamp(),
        attempted_at timestamptz,
        delivered_at timestamptz,
        status smallint,
        error text,
        CONSTRAINT webhook_delivery_pkey PRIMARY KEY (webhook_id, event_id)
      );
      CREATE INDEX webhook_delivery_due_idx ON webhook_delivery (next_attempt_at) WHERE next_attempt_at IS NOT NULL;
      CREATE INDEX webhook_delivery_event_id_idx ON webhook_delivery (event_id);

      COMMENT ON TABLE webhook IS 'Where alerts are delivered.';
      COMMENT ON TABLE webhook_event IS 'Outbox: events that are delivered to webhooks, stored with what caused them.';
      COMMENT ON TABLE webhook_delivery IS 'Outbox: the delivery of each event to each webhook.';

      -- Stores an event for the webhooks that have subscribed to its type; without one, nothing.
      CREATE FUNCTION webhook_emit(p_type text, p_data jsonb, p_once text DEFAULT NULL) RETURNS void LANGUAGE plpgsql AS $$
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

      ALTER TABLE limit_meter ADD COLUMN exhausted_at timestamptz;

      -- The largest threshold of a budget that was reached; null: none.
      CREATE FUNCTION limit_threshold(p_used numeric, p_amount bigint, p_alert_at smallint[]) RETURNS smallint
      LANGUAGE sql IMMUTABLE AS $$ SELECT max(at) FROM unnest(p_alert_at) at WHERE p_used * 100 >= at * p_amount::numeric $$;

      -- Announces a threshold, and that a budget is exhausted: all of it is spent, or a call was rejected. Once per meter,
      -- because the meter is marked in the same transaction.
      CREATE FUNCTION limit_meter_alert() RETURNS trigger LANGUAGE plpgsql AS $$
      DECLARE
        v_rule limit_rule;
        v_used numeric := NEW.spent::numeric - NEW.credited;
        v_reached smallint;
        v_crossed boolean;
        v_exhausted boolean;
        v_data jsonb;
      BEGIN
        SELECT * INTO v_rule FROM limit_rule WHERE id = NEW.rule_id;
        IF NOT FOUND OR v_rule.period IN ('minute', 'at_once') THEN RETURN NULL; END IF;
        v_reached := limit_threshold(v_used, v_rule.amount, v_rule.alert_at);
        v_crossed := COALESCE(v_reached > NEW.alerted, false);
        v_exhausted := NEW.exhausted_at IS NULL
          AND (v_used >= v_rule.amount OR (TG_OP = 'UPDATE' AND NEW.refused > OLD.refused));
        IF NOT (v_crossed OR v_exhausted) THEN RETURN NULL; END IF;
        BEGIN
          UPDATE limit_meter
            SET alerted = GREATEST(alerted, v_reached),
                exhausted_at = CASE WHEN v_exhausted THEN clock_timestamp() ELSE exhausted_at END
            WHERE (rule_id, subject, window_start) = (NEW.rule_id, NEW.subject, NEW.window_start);
          SELECT jsonb_build_object('limit_id', v_rule.id, 'scope', v_rule.scope, 'team', t.name, 'team_id', t.id,
              'key', k.name, 'key_id', k.id, 'subject', NULLIF(NEW.subject, ''), 'resource', v_rule.resource,
              'period', v_rule.period, 'mode', v_rule.mode, 'amount', v_rule.amount::text,
              'used', v_used::text, 'threshold', v_reached,
              'resets_at', CASE WHEN v_rule.period <> 'total' THEN extract(epoch FROM (NEW.window_start AT TIME ZONE
                v_rule.time_zone + ('1 ' || v_rule.period)::interval) AT TIME ZONE v_rule.time_zone) * 1000 END)
            INTO v_data
            FROM (SELECT) one
            LEFT JOIN gateway_key k ON k.id = v_rule.scope_id
            LEFT JOIN team t ON t.id = COALESCE(k.team_id, v_rule.scope_id);
          IF v_crossed THEN PERFORM webhook_emit('budget.threshold', v_data); END IF;
          IF v_exhausted THEN PERFORM webhook_emit('budget.exhausted', v_data); END IF;
        EXCEPTION WHEN OTHERS THEN
          -- Charges have priority. The meter is not marked, so the next charge tries again.
          RAISE WARNING 'the alert of limit % could not be stored: %', NEW.rule_id, SQLERRM;
        END;
        RETURN NULL;
      END $$;
      CREATE TRIGGER limit_meter_first_charge AFTER INSERT ON limit_meter
        FOR EACH ROW WHEN (NEW.spent > 0) EXECUTE FUNCTION limit_meter_alert();
      CREATE TRIGGER limit_meter_charged AFTER UPDATE OF spent, refused ON limit_meter
        FOR EACH ROW WHEN (NEW.spent > OLD.spent OR NEW.refused > OLD.refused) EXECUTE FUNCTION limit_meter_alert();

      -- A larger budget announces its thresholds again that are no longer reached.
      CREATE FUNCTION limit_rule_raised() RETURNS trigger LANGUAGE plpgsql AS $$
      BEGIN
        PERFORM FROM limit_meter WHERE rule_id = NEW.id AND (alerted > 0 OR exhausted_at IS NOT NULL)
          ORDER BY rule_id, subject, window_start FOR UPDATE;
        UPDATE limit_meter SET exhausted_at = NULL, alerted = LEAST(alerted,
            COALESCE(limit_threshold(spent::numeric - credited, NEW.amount, NEW.alert_at), 0))
          WHERE rule_id = NEW.id AND (alerted > 0 OR exhausted_at IS NOT NULL);
        RETURN NULL;
      END $$;
      CREATE TRIGGER limit_rule_raised AFTER UPDATE OF amount ON limit_rule
        FOR EACH ROW WHEN (NEW.amount > OLD.amount) EXECUTE FUNCTION limit_rule_raised();
    `);
  }

  async down(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`
      DROP TRIGGER limit_rule_raised ON limit_rule;
      DROP TRIGGER limit_meter_charged ON limit_meter;
      DROP TRIGGER limit_meter_first_charge ON limit_meter;
      DROP FUNCTION limit_rule_raised();
      DROP FUNCTION limit_meter_alert();
      DROP FUNCTION limit_threshold(numeric, bigint, smallint[]);
      ALTER TABLE limit_meter DROP COLUMN exhausted_at;
      DROP FUNCTION webhook_emit(text, jsonb, text);
      DROP TABLE webhook_delivery, webhook_event, webhook;
    `);
  }
}
