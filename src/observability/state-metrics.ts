import { Injectable } from '@nestjs/common';
import { HttpAdapterHost } from '@nestjs/core';
import { SessionsService } from '../admin/sessions/sessions.service.js';
import { DatabaseService } from '../database/database.service.js';
import { LookupPool } from '../database/lookup-pool.js';
import { PendingResponses } from '../idempotency/pending-responses.service.js';
import { ClaimsService } from '../idempotency/claims.service.js';
import { StoreFailures } from '../idempotency/store-failures.service.js';
import { StoredBytes } from '../idempotency/stored-bytes.service.js';
import { KeyLookupService } from '../auth/key-lookup.service.js';
import { KeyCache } from '../auth/key-cache.js';
import { GATEWAY_ERROR_CODES } from '../errors/gateway-error.js';
import { GatewayHttpAdapter } from '../proxy/http/gateway-http.adapter.js';
import { FinishingCalls } from '../proxy/exchange/finishing-calls.service.js';
import { UpstreamPools } from '../proxy/upstream/upstream-pools.js';
import { JournalDrainService } from '../request-log/journal/journal-drain.service.js';
import { Journal } from '../request-log/journal/journal.js';
import { LostRowsService } from '../request-log/journal/lost-rows.service.js';
import { LogWriter } from '../request-log/writer/log-writer.js';
import { RequestLogService } from '../request-log/request-log.service.js';
import type { Instruments } from './instruments.js';

/** Metrics of the state of each module, read when they are scraped. */
@Injectable()
export class StateMetrics {
  constructor(
    private readonly host: HttpAdapterHost<GatewayHttpAdapter>,
    private readonly log: RequestLogService,
    private readonly journal: Journal,
    private readonly writer: LogWriter,
    private readonly drain: JournalDrainService,
    private readonly lost: LostRowsService,
    private readonly keys: KeyCache,
    private readonly lookup: KeyLookupService,
    private readonly claims: ClaimsService,
    private readonly pending: PendingResponses,
    private readonly stored: StoredBytes,
    private readonly failures: StoreFailures,
    private readonly pools: UpstreamPools,
    private readonly finishing: FinishingCalls,
    private readonly lookups: LookupPool,
    private readonly database: DatabaseService,
    private readonly sessions: SessionsService,
  ) {}

  register(on: Instruments): void {
    this.registerCalls(on);
    this.registerJournal(on);
    this.registerLogWriter(on);
    this.registerKeys(on);
    this.registerIdempotency(on);
    this.registerConnections(on);
    this.registerSignIns(on);
  }

  private registerCalls(on: Instruments): void {
    on.gauge('postern_open_calls', 'Calls in flight.', () => this.log.openCount);
    on.gauge(
      'postern_open_requests',
      'Requests of any kind in flight.',
      () => this.host.httpAdapter.openRequests,
    );
    on.gauge(
      'postern_finishing_calls',
      'Calls in flight whose client has disconnected and whose response is read to its end, as on_disconnect says.',
      () => this.finishing.count,
    );
    on.counter(
      'postern_finish_limits_total',
      'Calls that were cancelled instead of finished, by the limit that they reached.',
      () => Object.entries(this.finishing.cancelled).map(([limit, count]) => [{ limit }, count]),
      'limit',
    );
    on.counter(
      'postern_refusals_total',
      'Error responses of the gateway, by code.',
      () => {
        const { counts } = this.host.httpAdapter.rejections;
        // The code of a module appears after its first error.
        return [...new Set([...GATEWAY_ERROR_CODES, ...counts.keys()])].map((code) => [
          { code },
          counts.get(code) ?? 0,
        ]);
      },
      'code',
    );
  }

  private registerJournal(on: Instruments): void {
    const { journal, drain } = this;
    on.gaugeBy('min', 'postern_journal_accepting', '1 if new calls are accepted, 0 if they get 503.', () =>
      Number(journal.accepting),
    );
    on.gaugeBy('max', 'postern_journal_degraded', '1 if the journal is degraded.', () =>
      Number(journal.degraded !== null),
    );
    on.gauge('postern_journal_bytes', 'Size of the journal files of this process run.', () => journal.bytes);
    on.gaugeBy(
      'max',
      'postern_journal_oldest_seconds',
      'Age of the oldest journal file that is still needed; 0 without one.',
      () => journal.oldestMs / 1_000,
    );
    on.gauge(
      'postern_journal_kept_bytes',
      'Size of the finished journal files that are kept, those of earlier process runs included.',
      () => journal.kept.bytes,
    );
    on.gaugeBy(
      'min',
      'postern_journal_kept_seconds',
      'So far back, every row that Postgres has acknowledged is still in a journal file; 0 if none are kept.',
      () => journal.kept.coveredMs / 1_000,
    );
    on.counter(
      'postern_journal_put_back_rows_total',
      'Rows that Postgres had acknowledged and lost, and that were written again from kept journal files.',
      () => this.lost.counts.rows,
    );
    on.counter(
      'postern_journal_recovered_rows_total',
      'Rows written to Postgres from journal files.',
      () => drain.counts.drained,
    );
    on.counter(
      'postern_journal_interrupted_calls_total',
      'Calls of processes that died during them.',
      () => drain.counts.interrupted,
    );
    on.counter(
      'postern_journal_damaged_lines_total',
      'Journal lines that could not be read.',
      () => drain.counts.corrupt,
    );
  }

  private registerLogWriter(on: Instruments): void {
    const { writer } = this;
    on.counter(
      'postern_log_rows_enqueued_total',
      'Rows handed to the log writer.',
      () => writer.counts.enqueued,
    );
    on.counter(
      'postern_log_rows_persisted_total',
      'Rows written to Postgres.',
      () => writer.counts.persisted,
    );
    on.counter(
      'postern_log_rows_rejected_total',
      'Rows that Postgres rejected because of their data; each is stored in a file and reported in the log.',
      () => writer.counts.rejected,
    );
    on.gauge(
      'postern_log_rows_waiting',
      'Rows of this process run that are not in Postgres yet, in memory or only in the journal.',
      () => [
        [{ place: 'memory' }, writer.waiting],
        [{ place: 'journal' }, writer.counts.spilled],
      ],
      'place',
    );
  }

  private registerKeys(on: Instruments): void {
    const { keys, lookup } = this;
    on.counter(
      'postern_key_cache_lookups_total',
      'Look-ups of well-formed keys; a miss queries Postgres.',
      () => [
        [{ result: 'hit' }, lookup.counts.hits],
        [{ result: 'miss' }, lookup.counts.misses],
      ],
      'result',
    );
    on.gauge('postern_key_cache_keys', 'Keys cached in memory.', () => keys.size);
  }

  private registerIdempotency(on: Instruments): void {
    on.counter(
      'postern_idempotency_claims_total',
      'Calls that were the first under their Idempotency-Key. Replays are calls with outcome "replayed".',
      () => this.claims.claimed,
    );
    on.gauge(
      'postern_idempotency_waiting_calls',
      "Repeated calls that wait for the first call's response.",
      () => this.pending.waiting,
    );
    on.counter(
      'postern_response_store_failures_total',
      'Responses that qualify but were not stored for retries or the cache, or not sent from the cache, by reason.',
      () => this.failures.counts.map(({ store, reason, count }) => [{ store, reason }, count]),
      'store',
      'reason',
    );
    on.gaugeBy(
      'max',
      'postern_idempotency_stored_bytes',
      'Stored responses in bytes, of all gateways on this database, measured from time to time.',
      () => this.stored.total,
    );
  }

  private registerSignIns(on: Instruments): void {
    const { token, singleSignOn } = this.sessions.counts;
    on.counter(
      'postern_sign_ins_total',
      'Sign-ins to the console. Those that failed are in no audit log.',
      () => [
        [{ method: 'token', result: 'ok' }, token.ok],
        [{ method: 'token', result: 'failed' }, token.failed],
        [{ method: 'sso', result: 'ok' }, singleSignOn.ok],
        [{ method: 'sso', result: 'failed' }, singleSignOn.failed],
      ],
      'method',
      'result',
    );
  }

  private registerConnections(on: Instruments): void {
    on.gaugeBy('min', 'postern_database_ready', '1 if Postgres was reached and migrated.', () =>
      Number(this.database.notReady === null),
    );
    on.gauge(
      'postern_database_connections',
      'Connections of the look-up pool, and queries that wait for one.',
      () => states(this.lookups.counts),
      'state',
    );
    on.gauge(
      'postern_upstream_connections',
      'Connections to providers, and calls that wait for one.',
      () => {
        const { connected, idle, waiting } = this.pools.counts;
        return states({ busy: connected - idle, idle, waiting });
      },
      'state',
    );
  }
}

function states(counts: Record<string, number>): [Record<string, string>, number][] {
  return Object.entries(counts).map(([state, count]) => [{ state }, count]);
}
