-- Revision 1
-- For [period, time zone, time in ms]: what names the period that holds the time, its end, and its begin, in ms.
-- Processes of an earlier version take the first for the begin.
CREATE OR REPLACE FUNCTION limit_windows(p_asked jsonb) RETURNS SETOF jsonb LANGUAGE sql AS $$
  SELECT jsonb_build_array(a->>0, a->>1, extract(epoch FROM starts) * 1000, extract(epoch FROM ends) * 1000,
                           extract(epoch FROM begins) * 1000)
  FROM jsonb_array_elements(p_asked) a
  CROSS JOIN LATERAL limit_window(a->>0, a->>1, to_timestamp((a->>2)::numeric / 1000))
$$;
