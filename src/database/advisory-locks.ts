/**
 * What only one process of all replicas does at a time. The numbers are any, but each its own: whoever waited for another's
 * work would wait for nothing. They stay the same from release to release, for old and new ones run side by side.
 */
export const ADVISORY_LOCKS = {
  /** A change of the schema. */
  migrations: 7_061_001,
  /** The creation of one partition of the request log. */
  partitions: 7_061_002,
  /** The first team and key of an empty database. */
  firstKey: 7_061_003,
} as const;
