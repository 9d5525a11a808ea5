-- Revision 1
-- UUIDv7, which cursors need, also for replicas of the version before, which insert sessions without an ID.
CREATE OR REPLACE FUNCTION admin_session_id() RETURNS uuid LANGUAGE sql VOLATILE AS $$
  SELECT encode(
    -- One of version 4, with the milliseconds in its first 48 bits, and version 7.
    set_bit(set_bit(
      overlay(uuid_send(gen_random_uuid()) PLACING
        substring(int8send((extract(epoch FROM clock_timestamp()) * 1000)::bigint) FROM 3) FROM 1 FOR 6),
      52, 1), 53, 1),
    'hex')::uuid
$$;
