/**
 * Keys of the advisory locks: work that only one process of all replicas does at a time. They stay the same in every
 * release, because old and new releases run side by side.
 */
export const ADVISORY_LOCKS = {
  /** A change of the schema. */
  migrations: 7_061_001,
  /** The creation of one partition of the request log. */
  partitions: 7_061_002,
  /** The first team and key of an empty database. */
  firstKey: 7_061_003,
  /** Updates of costs in the request log: repair and repricing. */
  repricing: 7_061_004,
  /** The search for expiring keys and models without a price, and alerts of degraded journals. */
  alerts: 7_061_005,
  /** The sending of rows to one sink: the first of two keys; the second is a hash of the ID of the sink. */
  sinks: 7_061_006,
  /** The rows of one consumer of the request log: the second key is a hash of its name. */
  consumers: 7_061_007,
  /** A job of a module that one process runs: the second key is a hash of its name. */
  jobs: 7_061_008,
  /** The maintenance of the counts of rejected requests. */
  refusals: 7_061_009,
} as const;
