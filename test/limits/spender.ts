// A process of its own that uses limits: started by spenders.ts.
import { LimitExceededError } from '../../src/limits/ledger/limit-errors.js';
import { timePasses } from '../support/eventually.js';
import { LedgerProcess, type LedgerSettings } from './ledger-process.js';

export type Work = {
  teamId: string;
  keyId: string;
  inFlight: number;
  /** Ends after this; a spender also ends when a limit rejects it. */
  forMs: number;
} & (
  | { kind: 'spend'; reserved: string; least: string; most: string; callMs: number }
  | { kind: 'rate'; callMs: number }
  | { kind: 'slots'; callMs: number }
);

export interface Report {
  admitted: number;
  rejected: number;
  errors: string[];
  /** When calls were admitted, and when they ended (ms of the machine's monotonic clock). */
  times: [number, number][];
  /** From the first call to the end of the last. */
  ms: number;
}

/** CLOCK_MONOTONIC, which all processes of a machine share; their time origins differ if one waits for a processor. */
const now = () => Number(process.hrtime.bigint()) / 1e6;

// The worker that started it has ended.
process.once('disconnect', () => process.exit());
process.on('message', (order) => {
  if (order !== 'go') void spend(...(order as [LedgerSettings, Work]));
});

async function spend(settings: LedgerSettings, work: Work): Promise<void> {
  const engine = await LedgerProcess.start(settings);
  const report: Report = {
    admitted: 0,
    rejected: 0,
    errors: [],
    times: [],
    ms: 0,
  };
  const going = new Promise((go) => process.once('message', go));
  process.send!('ready');
  await going;
  const begunAt = now();
  await Promise.all(
    Array.from({ length: work.inFlight }, () => use(engine, work, report, begunAt + work.forMs)),
  );
  report.ms = now() - begunAt;
  await engine.stop();
  process.send!(report);
}

async function use(engine: LedgerProcess, work: Work, report: Report, until: number): Promise<void> {
  const { teamId, keyId, kind } = work;
  const reservation = { usd: kind === 'spend' ? Number(work.reserved) : 0, tokens: 0 };
  while (now() < until) {
    let ticket;
    try {
      ticket = await engine.admit(teamId, keyId, reservation);
    } catch (error) {
      report.rejected++;
      if (!(error instanceof LimitExceededError)) {
        report.errors.push(String(error));
        return;
      }
      if (kind === 'spend') return;
      const { retryAfterMs } = error.state;
      await timePasses(Math.min(retryAfterMs ?? 100, 200), 'as the rejection asks for');
      continue;
    }
    const admittedAt = now();
    report.admitted++;
    if (kind === 'spend') {
      const { end } = engine.begin(ticket, keyId, teamId);
      await timePasses(Math.random() * 2 * work.callMs, 'the call');
      const [least, most] = [Number(work.least), Number(work.most)];
      end(BigInt(Math.floor(least + Math.random() * (most - least))));
    } else {
      await timePasses(work.callMs * (0.5 + Math.random()), 'the call');
      report.times.push([admittedAt, now()]);
      ticket.settle({ usd: null, tokens: null });
    }
  }
}
