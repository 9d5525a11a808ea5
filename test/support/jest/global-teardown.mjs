import pg from 'pg';

export default async function globalTeardown() {
  const client = new pg.Client({ connectionString: process.env.POSTERN_TEST_SERVER });
  await client.connect();
  const { POSTERN_TEST_TEMPLATE: template } = process.env;
  for (const name of [template, `${template}_days`]) await client.query(`DROP DATABASE ${name}`);
  const kept = await client.query(`SELECT 1 FROM pg_database WHERE datname LIKE 'postern_test_%'`);
  await client.end();
  await globalThis.stopTestCluster?.(kept.rows.length > 0);
  await globalThis.removeTemporaryFiles();
}
