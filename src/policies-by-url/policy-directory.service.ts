import { createHash } from 'node:crypto';
import { Injectable, Logger, type OnModuleDestroy } from '@nestjs/common';
import { HttpAdapterHost } from '@nestjs/core';
import { DataSource } from 'typeorm';
import type { Grant } from '../auth/caller.js';
import { InjectSettings } from '../config/config.module.js';
import type { Settings } from '../config/settings.js';
import { countOfChanges, LatestReading } from '../database/change-counter.js';
import { ChangeFeed } from '../database/change-feed.js';
import { DatabaseService } from '../database/database.service.js';
import { describeError } from '../errors/describe-error.js';
import { GatewayError } from '../errors/gateway-error.js';
import { matchesPattern } from '../limits/model-pattern.js';
import { CLOSE_TIMEOUT, withTimeout } from '../platform/patience.js';
import { POLICY_UNAVAILABLE } from './decision/errors.js';
import { type Question, type ReceiverResponse, type Rule, Rules } from './decision/rule.js';
import { PolicyReceiver } from './policy-receiver.js';
import { PolicySecrets } from './policy-secrets.service.js';
import type { StoredPolicy } from './policy.entity.js';

/** Every enabled policy in one snapshot, with the count of changes it reflects. No row: a null id. */
const READ = `
  SELECT c.value AS counted, p.id, p.name, p.version, p.sealed, p.team_ids AS "teamIds", p.key_ids AS "keyIds", p.models,
         p.send, p.timeout_ms AS "timeoutMs", p.on_failure AS "onFailure", p.cache_seconds AS "cacheSeconds"
  FROM (${countOfChanges('policies')}) c LEFT JOIN policy p ON p.enabled
  ORDER BY p.run_order, p.name`;

type Row = Omit<StoredPolicy, 'id' | 'shownUrl' | 'runOrder' | 'enabled' | 'createdAt' | 'updatedAt'> & {
  counted: string;
  id: string | null;
};

/** Of all that a policy is: in a restored database, another one may have its ID and version. */
function revisionOf({ counted: _, ...policy }: Row): string {
  return createHash('sha256').update(JSON.stringify(policy)).digest('base64');
}

/** A policy that is asked. */
class KnownPolicy implements Rule {
  readonly id: string;
  readonly name: string;
  readonly revision: string;
  readonly send: Rule['send'];
  readonly timeoutMs: number;
  readonly onFailure: Rule['onFailure'];
  readonly cacheSeconds: number;
  readonly models: readonly string[] | null;
  private readonly teamIds: readonly string[] | null;
  private readonly keyIds: readonly string[] | null;

  /** @param receiver null: its URL cannot be decrypted */
  constructor(
    row: Row,
    private readonly receiver: PolicyReceiver | null,
  ) {
    this.id = row.id!;
    this.name = row.name;
    this.revision = revisionOf(row);
    this.send = row.send;
    this.timeoutMs = row.timeoutMs;
    this.onFailure = row.onFailure;
    this.cacheSeconds = row.cacheSeconds;
    this.models = row.models;
    this.teamIds = row.teamIds;
    this.keyIds = row.keyIds;
  }

  concerns({ teamId, keyId }: Grant): boolean {
    const { teamIds, keyIds } = this;
    if (teamIds === null && keyIds === null) return true;
    return teamIds?.includes(teamId) === true || keyIds?.includes(keyId) === true;
  }

  concernsModel(model: string): boolean {
    return this.models === null || this.models.some((pattern) => matchesPattern(pattern, model));
  }

  ask(question: Question, signal: AbortSignal): Promise<ReceiverResponse> {
    if (this.receiver === null) return Promise.reject(new GatewayError(POLICY_UNAVAILABLE));
    return this.receiver.ask(question, signal);
  }

  async close(): Promise<void> {
    await this.receiver?.close();
  }
}

/** Holds the enabled policies in memory, because there are few, and each call may be theirs. */
@Injectable()
export class PolicyDirectory extends Rules implements OnModuleDestroy {
  private readonly logger = new Logger('Policies');
  private readonly listeners: (() => void)[] = [];
  private policies: readonly KnownPolicy[] | null = null;
  private readonly latest = new LatestReading<Row>((rows) => this.keep(rows));

  constructor(
    private readonly dataSource: DataSource,
    private readonly secrets: PolicySecrets,
    @InjectSettings() private readonly env: Settings,
    private readonly host: HttpAdapterHost,
    feed: ChangeFeed,
    database: DatabaseService,
  ) {
    super();
    database.whenReady(() => this.refresh());
    feed.subscribe('policies', {
      onChange: null,
      compare: (client) => this.latest.take(async () => (await client.query<Row>(READ)).rows),
    });
  }

  get all(): readonly Rule[] | null {
    return this.policies;
  }

  onChange(listener: () => void): void {
    this.listeners.push(listener);
  }

  /** Reads the policies now, so that a change made by this process takes effect before its response. */
  async refresh(): Promise<void> {
    await this.latest.take(() => this.dataSource.query<Row[]>(READ));
  }

  async onModuleDestroy(): Promise<void> {
    await withTimeout(CLOSE_TIMEOUT.ms, Promise.all((this.policies ?? []).map((policy) => policy.close())));
  }

  /**
   * What is replaced is not closed: calls that began with it may wait to ask it, and its connections close by themselves once
   * they are idle.
   */
  private keep(rows: readonly Row[]): void {
    const before = this.policies ?? [];
    this.policies = rows.filter(({ id }) => id !== null).map((row) => this.known(row, before));
    for (const listener of this.listeners) listener();
  }

  /** One that has not changed keeps its connections. */
  private known(row: Row, before: readonly KnownPolicy[]): KnownPolicy {
    const revision = revisionOf(row);
    return (
      before.find((policy) => policy.revision === revision) ?? new KnownPolicy(row, this.receiverOf(row))
    );
  }

  private receiverOf({ id, name, sealed, timeoutMs }: Row): PolicyReceiver | null {
    try {
      return new PolicyReceiver(this.secrets.open(id!, sealed), timeoutMs, this.env, this.host);
    } catch (error) {
      this.logger.error(
        `Policy ${name} cannot be asked, so its calls are rejected: ${describeError(error)} Restore MASTER_KEY, or set its URL and secret again.`,
      );
      return null;
    }
  }
}
