import pg from 'pg';

export default async function globalTeardown() {
  const client = new pg.Client({ connectionString: process.env.POSTERN_TEST_SERVER });
  await client.connect();
  await client.query(`DROP DATABASE ${process.env.POSTERN_TEST_TEMPLATE}`);
  const kept = await client.query(`SELECT 1 FROM pg_database WHERE datname LIKE 'postern_test_%'`);
  await client.end();
  await globalThis.stopTestCluster?.(kept.rows.length > 0);
  await globalThis.removeTemporaryFiles();
}
