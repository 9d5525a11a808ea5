-- Revision 1
-- Drops a partition of the request log whose day has ended. Runs with the rights of its owner, who ran the migrations: a
-- gateway needs no right to drop tables.
CREATE OR REPLACE FUNCTION request_log_drop_partition(p_table regclass) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
  v_table text;
  v_has_ended boolean;
BEGIN
  SELECT format('%I.%I', n.nspname, c.relname),
    -- Written and read in the same time zone and date style.
    substring(pg_get_expr(c.relpartbound, c.oid), 'TO \(''([^'']+)''\)')::timestamptz <= clock_timestamp()
  INTO v_table, v_has_ended
  FROM pg_catalog.pg_inherits i
    JOIN pg_catalog.pg_class c ON c.oid = i.inhrelid
    JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
  WHERE i.inhrelid = p_table AND i.inhparent = format('%I.request_log', pg_catalog.current_schema())::regclass;
  IF v_table IS NULL THEN
    RAISE EXCEPTION 'the request log has no partition %', p_table USING ERRCODE = 'undefined_table';
  END IF;
  IF v_has_ended IS NOT TRUE THEN
    RAISE EXCEPTION 'the time of the partition % has not ended', v_table;
  END IF;
  EXECUTE format('DROP TABLE %s', v_table);
END $$;
REVOKE EXECUTE ON FUNCTION request_log_drop_partition(regclass) FROM PUBLIC;
