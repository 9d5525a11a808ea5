/** How a call ended. */
export type Outcome =
  | 'completed'
  | 'client_aborted'
  | 'client_error'
  | 'upstream_error'
  | 'upstream_timeout'
  | 'truncated'
  | 'interrupted'
  | 'replayed'
  | 'cached'
  | 'retried';
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
] as const satisfies readonly Outcome[];
