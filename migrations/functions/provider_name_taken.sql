-- Revision 1
-- Providers and routes have their names in one space. The lock is the one of every change of providers.
CREATE OR REPLACE FUNCTION provider_name_taken() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  v_taken boolean;
BEGIN
  PERFORM FROM change_counter WHERE name = 'providers' FOR UPDATE;
  IF TG_TABLE_NAME = 'route' THEN v_taken := EXISTS (SELECT FROM provider WHERE name = NEW.name);
  ELSE v_taken := EXISTS (SELECT FROM route WHERE name = NEW.name);
  END IF;
  IF v_taken THEN
    RAISE unique_violation USING MESSAGE = 'a provider or a route has this name',
      CONSTRAINT = TG_TABLE_NAME || '_name_key';
  END IF;
  RETURN NEW;
END $$;
