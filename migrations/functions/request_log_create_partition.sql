-- Revision 1
-- Creates a partition of the request log for a UTC day or a part of one. Runs with the rights of its owner, who ran the
-- migrations: a gateway needs no right to create tables. CREATE TABLE and ATTACH are why: see partitions.ts.
CREATE OR REPLACE FUNCTION request_log_create_partition(p_table text, p_from timestamptz, p_to timestamptz) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
  -- Of the migrations. Names are qualified: a temporary table of the caller must not stand in for the log.
  v_schema text := pg_catalog.current_schema();
BEGIN
  IF p_table !~ '^request_log_[0-9]{8}(_[0-9]+)?$' OR p_from >= p_to
    OR p_to > pg_catalog.date_trunc('day', p_from, 'UTC') + interval '24 hours' THEN
    RAISE EXCEPTION 'not a partition of a day: %, from % to %', p_table, p_from, p_to;
  END IF;
  EXECUTE format('CREATE TABLE %1$I.%2$I (LIKE %1$I.request_log INCLUDING ALL)', v_schema, p_table);
  -- As numbers, which no time zone and no date style can change.
  EXECUTE format(
    'ALTER TABLE %1$I.request_log ATTACH PARTITION %1$I.%2$I FOR VALUES FROM (to_timestamp(%3$s)) TO (to_timestamp(%4$s))',
    v_schema, p_table, extract(epoch FROM p_from), extract(epoch FROM p_to));
END $$;
REVOKE EXECUTE ON FUNCTION request_log_create_partition(text, timestamptz, timestamptz) FROM PUBLIC;
