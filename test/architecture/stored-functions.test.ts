import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { FUNCTIONS, readFunction } from '../../src/database/functions.js';

const folder = join(__dirname, '../../migrations');
const text = (file: string) => readFileSync(join(folder, file), 'utf8');

/**
 * Each file's revision, and the beginning of its digest. A file that differs from the last release gets the next revision:
 * without it, replicas of two versions that start in turn replace each other's function.
 */
const REVISIONS: Record<(typeof FUNCTIONS)[number], string> = {
  admin_session_id: '1 f68404d8f993',
  count_change: '3 d75f0259d883',
  count_key_change: '3 224205dc720a',
  limit_emit: '1 b488e4d61183',
  limit_exchange: '1 1e25efab2c15',
  limit_exchange_hot: '1 59289e6d4f3d',
  limit_fold: '1 738ac7023ca0',
  limit_forget: '2 cfbfcde93e3c',
  limit_lock_meter: '2 c48417d3318c',
  limit_meter_alert: '2 4de5ca1da45e',
  limit_rule_raised: '1 2693ca2b423b',
  limit_sweep: '3 829f541b7cfc',
  limit_take_holds: '3 33b84007547e',
  limit_take_rates: '2 6b7bcedab1c3',
  limit_threshold: '1 9569908b360d',
  limit_window: '1 3e2036b0e90f',
  limit_windows: '1 bf0ea6d402ab',
  provider_name_taken: '1 204f9679b2c5',
  request_log_create_partition: '1 54e152e8640d',
  request_log_drop_partition: '1 f1056148c17a',
  request_log_unknown_cost: '1 5b9c20790aa0',
  webhook_emit: '1 522b7dfa7f7c',
};

describe('the stored functions', () => {
  it('are all listed, each in a file that creates it and nothing else', () => {
    expect(readdirSync(join(folder, 'functions')).sort()).toEqual(
      FUNCTIONS.map((name) => `${name}.sql`).sort(),
    );
    for (const name of FUNCTIONS) {
      const made = text(`functions/${name}.sql`).matchAll(/^(?:CREATE|ALTER|DROP) .*?(?=\()/gm);
      expect([...made].map(([what]) => what)).toEqual([`CREATE OR REPLACE FUNCTION ${name}`]);
    }
  });

  it('have a new revision where they changed', async () => {
    const files = await Promise.all(FUNCTIONS.map(readFunction));
    const found = files.map(({ name, revision, digest }) => [name, `${revision} ${digest.slice(0, 12)}`]);
    expect(Object.fromEntries(found)).toEqual(REVISIONS);
  });

  it('are not changed by migrations since they have files', () => {
    const since = readdirSync(folder).filter((file) => /^\d.*\.ts$/.test(file) && file >= '1798000100000');
    expect(since.length).toBeGreaterThan(0);
    expect(
      since.filter((file) => /\breplaceInFunctions\b|\bCREATE OR REPLACE FUNCTION\b/.test(text(file))),
    ).toEqual([]);
  });
});
