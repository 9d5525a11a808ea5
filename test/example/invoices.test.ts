import { Logger } from '@nestjs/common';
import { insertRow } from '../request-log/rows.js';
import { addToApp } from '../support/app-modules.js';
import { createDatabase, type TestDatabase } from '../support/database.js';
import { startTestGateway, type TestGateway } from '../support/gateway.js';
import { DailyTotalJob } from './invoices/daily-total.job.js';
import { InvoicesModule } from './invoices/invoices.module.js';

addToApp(InvoicesModule);

let database: TestDatabase;
const replicas: TestGateway[] = [];
beforeAll(async () => {
  database = await createDatabase();
  for (let i = 0; i < 2; i++) replicas.push(await startTestGateway({}, database));
});
afterAll(async () => {
  for (const replica of replicas) await replica.stop();
  await database.drop();
});

it('has a line for each call, also when its cost comes late', async () => {
  const id = await insertRow(database, new Date());
  await insertRow(database, new Date(), { cost_usd: '0.1' });
  await database.find('SELECT FROM invoice_line WHERE id = $1 AND cost_usd IS NULL', [id]);
  await database.query(
    `UPDATE request_log SET cost_usd = 0.2, recorded_at = date_trunc('milliseconds', clock_timestamp()) WHERE id = $1`,
    [id],
  );
  await database.find('SELECT FROM invoice_line WHERE id = $1 AND cost_usd = 0.2', [id]);
  const lines = 'SELECT count(*)::int AS lines, sum(cost_usd) AS usd FROM invoice_line';
  await database.find(`SELECT FROM (${lines}) AS all_lines WHERE lines = 2`);
  expect(await database.query(lines)).toEqual([{ lines: 2, usd: '0.300000000' }]);
});

it('logs the total in one of two replicas', async () => {
  const logged: string[] = [];
  const keep = (message: unknown) => void logged.push(String(message));
  Logger.overrideLogger({ log: keep, warn: keep, error: keep, fatal: keep });
  await Promise.all(
    replicas.map(({ gateway }) => gateway.app.get(DailyTotalJob, { strict: false }).onSchedule()),
  );
  expect(logged.filter((line) => line.includes('USD'))).toEqual(['All calls have cost 0.300000000 USD.']);
});
