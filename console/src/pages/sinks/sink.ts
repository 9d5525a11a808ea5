import type { ResponseOf } from '../../api/client';
import type { Tone } from '../../display/status-badge';

export type Sink = ResponseOf<'/admin/v1/sinks/{id}', 'get'>;

export const SINK_TONES: Record<Sink['state'], Tone> = {
  current: 'good',
  sending: 'neutral',
  failing: 'bad',
  paused: 'warning',
};

/** What each kind is, where it sends rows to, and what its secret is. */
export const KINDS: Record<
  Sink['kind'],
  { label: string; url: string; target: string | null; secret: string }
> = {
  clickhouse: {
    label: 'ClickHouse',
    url: 'https://clickhouse.example.com:8443',
    target: 'Table, with its database: postern.request_log',
    secret: 'user:password. The user needs INSERT and SELECT on the table.',
  },
  jetstream: {
    label: 'NATS JetStream',
    url: 'tls://nats.example.com:4222',
    target: 'Subject of the stream: postern.requests',
    secret: 'user:password, a token, or the text of a credentials file.',
  },
  http: {
    label: 'HTTP receiver',
    url: 'https://rows.example.com/postern',
    target: null,
    secret: 'Sent as a bearer token.',
  },
};

/** The queries that show sinks. */
export const SINK_LISTS = ['sinks'];
