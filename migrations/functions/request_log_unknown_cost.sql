-- Revision 1
-- A call whose usage is not final has no cost. Replicas of a version without usage_final would give it that of the tokens
-- that were read.
CREATE OR REPLACE FUNCTION request_log_unknown_cost() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  NEW.cost_usd := NULL;
  NEW.price_id := NULL;
  RETURN NEW;
END $$;
