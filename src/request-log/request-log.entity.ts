import { Column, Entity, Index, PrimaryColumn } from 'typeorm';

export const OUTCOMES = [
  'completed',
  'client_aborted',
  'client_error',
  'upstream_error',
  'upstream_timeout',
  'truncated',
  'interrupted',
  'replayed',
] as const;
export type Outcome = (typeof OUTCOMES)[number];

const PRIMARY_KEY = { primaryKeyConstraintName: 'request_log_pkey' };

/** One row per forwarded call. The table is range-partitioned by UTC day on `started_at`. */
@Entity('request_log')
@Index('request_log_key_id_idx', ['keyId', 'startedAt'])
@Index('request_log_team_id_idx', ['teamId', 'startedAt'])
@Index('request_log_recorded_at_idx', ['recordedAt'], { type: 'brin' })
export class RequestLog {
  @PrimaryColumn('timestamptz', { name: 'started_at', ...PRIMARY_KEY })
  startedAt!: Date;

  /** UUIDv7 made here; its own millisecond is `started_at`, so that one id has one partition. */
  @PrimaryColumn('uuid', PRIMARY_KEY)
  id!: string;

  /** When Postgres got the row, or its correction; whole milliseconds. */
  @Column('timestamptz', {
    name: 'recorded_at',
    default: () => "date_trunc('milliseconds', clock_timestamp())",
  })
  recordedAt!: Date;

  @Column('uuid', { name: 'team_id' })
  teamId!: string;

  @Column('uuid', { name: 'key_id' })
  keyId!: string;

  @Column('text')
  provider!: string;

  @Column('text')
  method!: string;

  /** As the client sent it, without the query. */
  @Column('text', { nullable: true })
  path!: string | null;

  @Column('text', { nullable: true })
  model!: string | null;

  @Column('boolean')
  streamed!: boolean;

  /** What the client was sent, null when it was sent no head. */
  @Column('smallint', { nullable: true })
  status!: number | null;

  @Column('text')
  outcome!: Outcome;

  @Column('text', { name: 'error_code', nullable: true })
  errorCode!: string | null;

  /** Bytes of body taken from the client; null when this process died before it could tell. */
  @Column('bigint', { name: 'request_bytes', nullable: true })
  requestBytes!: string | null;

  /** Bytes of the provider's body passed on to the client; null as above. */
  @Column('bigint', { name: 'response_bytes', nullable: true })
  responseBytes!: string | null;

  /** From the request's head to the head of the answer, monotonic milliseconds. */
  @Column('real', { name: 'ttfb_ms', nullable: true })
  ttfbMs!: number | null;

  /** From the request's head to the last byte, monotonic milliseconds. */
  @Column('real', { name: 'duration_ms', nullable: true })
  durationMs!: number | null;

  @Column('int', { name: 'prompt_tokens', nullable: true })
  promptTokens!: number | null;

  @Column('int', { name: 'completion_tokens', nullable: true })
  completionTokens!: number | null;

  @Column('int', { name: 'cached_tokens', nullable: true })
  cachedTokens!: number | null;

  @Column('int', { name: 'reasoning_tokens', nullable: true })
  reasoningTokens!: number | null;

  @Column('text', { name: 'provider_request_id', nullable: true })
  providerRequestId!: string | null;

  @Column('text', { name: 'idempotency_key', nullable: true })
  idempotencyKey!: string | null;

  @Column('smallint', { name: 'sdk_retry_count', nullable: true })
  sdkRetryCount!: number | null;

  @Column('inet', { name: 'client_ip', nullable: true })
  clientIp!: string | null;

  @Column('text', { name: 'user_agent', nullable: true })
  userAgent!: string | null;
}
