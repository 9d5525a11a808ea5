/** How a call ended. */
export const OUTCOMES = [
  'completed',
  'client_aborted',
  'client_error',
  'upstream_error',
  'upstream_timeout',
  'truncated',
  'interrupted',
  'replayed',
  'cached',
  'retried',
] as const;
export type Outcome = (typeof OUTCOMES)[number];
