// Gateways without their HTTP side, several in one process: the ledger of limits, the log writer, the journal and the
// change feed of each, with its own connections to Postgres, as the code of this build has them. Started by
// bench/replicas.mjs, which says what they do by one message and gets one report.
import { mkdtemp, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Logger } from '@nestjs/common';
import pg from 'pg';
import { v7 as uuidv7 } from 'uuid';
import { ChangeFeed } from '../../dist/src/database/change-feed.js';
import { LimitExceededError } from '../../dist/src/limits/ledger/limit-errors.js';
import { LedgerService } from '../../dist/src/limits/ledger/ledger.service.js';
import { RuleCache } from '../../dist/src/limits/ledger/rule-cache.js';
import { dollarsOf } from '../../dist/src/request-log/column-domains.js';
import { COLUMNS, LOGGED_COLUMNS } from '../../dist/src/request-log/columns.js';
import { Journal } from '../../dist/src/request-log/journal/journal.js';
import { JournalDrainService } from '../../dist/src/request-log/journal/journal-drain.service.js';
import { LogWriter } from '../../dist/src/request-log/writer/log-writer.js';

/** As a call without facts has them. */
const EMPTY = Object.fromEntries(LOGGED_COLUMNS.map(({ name }) => [name, null]));

/** Calls of one end user and of no session. */
const COUNTED = { endUser: '', session: null, isModelKnown: true };

class Replica {
  static async start({ databaseUrl, folder }) {
    const dataDir = await mkdtemp(join(folder, 'replica-'));
    const env = {
      dataDir,
      databaseUrl,
      journalFsyncMs: 100,
      worker: 1,
      workers: 1,
      keyCacheStaleMs: 600_000,
      limitsWithoutDatabase: 'reject',
      requestLogUsers: 'plain',
      attribution: 'all',
      masterKey: Buffer.alloc(32, 7),
    };
    const hooks = [];
    const database = { notReady: null, whenReady: (hook) => void hooks.push(hook) };
    const dataSource = {
      query: async (text, values) => {
        const client = new pg.Client({ connectionString: databaseUrl });
        await client.connect();
        try {
          return (await client.query(text, values)).rows;
        } finally {
          await client.end();
        }
      },
    };
    const replica = new Replica();
    replica.feed = new ChangeFeed(env, database);
    const rules = new RuleCache(dataSource, replica.feed, database);
    replica.journal = new Journal(env);
    replica.journal.onModuleInit();
    replica.ledger = new LedgerService(dataSource, rules, replica.feed, database, replica.journal, env);
    replica.writer = new LogWriter(env, replica.journal, database, replica.ledger);
    replica.drain = new JournalDrainService(replica.journal, replica.writer, env, database);
    // The rules first: the feed, which was made first, would read them too.
    for (const hook of hooks.slice(1)) await hook();
    await hooks[0]();
    return replica;
  }

  async call({ teamId, keyId, reserved, least, most, callMs }, report) {
    const askedAt = performance.now();
    const id = uuidv7();
    let ticket;
    try {
      const set = this.ledger.rulesOf(teamId, keyId);
      ticket = await this.ledger.admit(set, id, COUNTED, { usd: reserved, tokens: 0 });
    } catch (error) {
      const isRejected = error instanceof LimitExceededError;
      report[isRejected ? 'rejected' : 'failed']++;
      if (!isRejected) report.errors[error.message] = (report.errors[error.message] ?? 0) + 1;
      report.rejectedAfter.push(performance.now() - askedAt);
      return;
    }
    report.admitted++;
    report.waits.push(performance.now() - askedAt);
    const row = {
      ...EMPTY,
      id,
      started_at: new Date(parseInt(id.slice(0, 8) + id.slice(9, 13), 16)).toISOString(),
      key_id: keyId,
      team_id: teamId,
      provider: COLUMNS.provider.toDomain('openai'),
      method: 'POST',
      path: '/v1/chat/completions',
      streamed: false,
      status: 200,
      outcome: 'completed',
      request_bytes: 1_000,
      response_bytes: 1_000,
      prompt_tokens: 1_000,
      completion_tokens: 100,
      charge_usd: dollarsOf(ticket.reservation.usd),
      charge_rules: ticket.reservation.budgets.named('openai', null),
    };
    const files = [this.journal.append({ t: 'B', ...row })];
    await sleep(Math.random() * 2 * callMs);
    const usd = least + Math.floor(Math.random() * (most - least));
    row.cost_usd = dollarsOf(usd);
    files.push(this.journal.append({ t: 'E', ...row }), this.journal.append({ t: 'U', ...row }));
    ticket.settle({ usd, tokens: null });
    this.writer.add(row, files);
  }

  async stop() {
    await this.feed.onApplicationShutdown();
    this.drain.onApplicationShutdown();
    await this.writer.stop();
    await this.journal.close();
  }
}

/** Calls of one replica, at random times. */
async function work(replica, order, until, report) {
  const calls = new Set();
  for (let at = performance.now(); ;) {
    at += -Math.log(1 - Math.random()) * (1_000 / order.callsPerSecond);
    if (at > until) break;
    const wait = at - performance.now();
    if (wait > 1) await sleep(wait);
    const call = replica.call(order, report).finally(() => calls.delete(call));
    calls.add(call);
  }
  await Promise.all(calls);
}

process.on('message', (message) => {
  if (message.databaseUrl !== undefined) void run(message);
});

async function run({ databaseUrl, folder, replicas: count, seconds, isHot, ...order }) {
  Logger.overrideLogger(false);
  const report = {
    admitted: 0,
    rejected: 0,
    failed: 0,
    errors: {},
    waits: [],
    rejectedAfter: [],
    exchanges: 0,
    failedExchanges: 0,
  };
  const replicas = await Promise.all(
    Array.from({ length: count }, () => Replica.start({ databaseUrl, folder })),
  );
  const going = new Promise((go) => process.once('message', go));
  process.send('ready');
  await going;
  const until = performance.now() + seconds * 1_000;
  await Promise.all(replicas.map((replica) => work(replica, order, until, report)));
  const stoppedAt = performance.now();
  await Promise.all(replicas.map((replica) => replica.stop()));
  report.stopMs = performance.now() - stoppedAt;
  const exchanges = replicas.map(({ ledger }) => (isHot ? ledger.hotExchange : ledger.exchange));
  report.durations = exchanges.map(({ durations }) => durations);
  for (const { counts } of exchanges) {
    report.exchanges += counts.ok;
    report.failedExchanges += counts.failed;
  }
  await new Promise((sent) => process.send(report, sent));
  await rm(folder, { recursive: true, force: true });
  process.disconnect();
}
