import { StatusBadge, type Tone } from '../../display/status-badge';
import { OUTCOMES } from '../../filters/fields';
import type { Call } from './call';

/** The status that the client was sent, and how the call ended unless the whole response was sent. */
export function CallResult({ call }: { call: Pick<Call, 'status' | 'outcome'> }) {
  return <StatusBadge tone={toneOf(call)}>{resultText(call)}</StatusBadge>;
}

function resultText({ status, outcome }: Pick<Call, 'status' | 'outcome'>): string {
  const end = outcome === 'completed' ? '' : (OUTCOMES[outcome] ?? outcome);
  return [status === null ? '' : String(status), end].filter((part) => part !== '').join(' · ') || '–';
}

/** The client was sent the whole response. */
const SENT: ReadonlySet<Call['outcome']> = new Set(['completed', 'replayed', 'cached']);

function toneOf({ status, outcome }: Pick<Call, 'status' | 'outcome'>): Tone {
  if (outcome === 'client_aborted' || outcome === 'retried') return 'neutral';
  if (status !== null && status === 429) return 'warning';
  if (status === null || status >= 400 || !SENT.has(outcome)) return 'bad';
  return 'good';
}
