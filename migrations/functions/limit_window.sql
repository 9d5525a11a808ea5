-- Revision 1
-- The period that holds a time. "starts" names it: what date_trunc() says of each of its times, as in the settlement.
-- It lasts from "begins" to "ends": the nearest quarters of an hour before and after which date_trunc() says something
-- else. They are looked for 3 hours around the midnights, because clocks change by less.
CREATE OR REPLACE FUNCTION limit_window(
  p_period text, p_zone text, p_at timestamptz, OUT starts timestamptz, OUT begins timestamptz, OUT ends timestamptz
) LANGUAGE sql STABLE AS $$
  SELECT asked.starts,
         max(q) FILTER (WHERE q <= p_at AND date_trunc(p_period, q - interval '15 minutes', p_zone) <> asked.starts),
         min(q) FILTER (WHERE q > p_at AND date_trunc(p_period, q, p_zone) <> asked.starts)
  FROM (SELECT date_trunc(p_period, date_bin('15 minutes', p_at, to_timestamp(0)), p_zone) AS starts,
               date_trunc(p_period, p_at AT TIME ZONE p_zone) AS midnight) asked
  CROSS JOIN (VALUES (0), (1)) edge (n)
  CROSS JOIN LATERAL (
    SELECT date_bin('15 minutes', (midnight + n * ('1 ' || p_period)::interval) AT TIME ZONE p_zone,
                    to_timestamp(0)) AS at
  ) near
  CROSS JOIN LATERAL generate_series(near.at - interval '3 hours', near.at + interval '3 hours', '15 minutes') q
  GROUP BY asked.starts
$$;
