import pg from 'pg';
import { FORMATTERS } from '../../src/requests/export-format.js';
import { NEWEST_FIRST } from '../../src/requests/request-log.export.js';
import { startTestGateway, type TestGateway } from '../support/gateway.js';

let postern: TestGateway;
beforeAll(async () => {
  postern = await startTestGateway();
});
afterAll(() => postern.stop());

it.each(['ndjson', 'csv'] as const)(
  'reads the log by its index for %s, without sorting it',
  async (format) => {
    const client = new pg.Client({ connectionString: postern.database.url });
    await client.connect();
    try {
      // An empty table is sorted sooner than its index is read.
      await client.query('SET enable_sort = off');
      const sql = `EXPLAIN ${FORMATTERS[format].select(NEWEST_FIRST)}`;
      const { rows } = await client.query<{ 'QUERY PLAN': string }>(sql);
      const plan = rows.map((row) => row['QUERY PLAN']).join('\n');
      expect(plan).toContain('Index Scan Backward');
      expect(plan).not.toContain('Sort');
    } finally {
      await client.end();
    }
  },
);
