import pg from 'pg';

/** Runs one statement on a connection of its own. @throws Error if the server rejects it, or ends meanwhile */
export async function queryOnce<T extends object>(
  url: string,
  text: string,
  values?: unknown[],
): Promise<T[]> {
  const client = new pg.Client({ connectionString: url });
  // A server that is killed ends the connection: the statement rejects.
  client.on('error', () => {});
  await client.connect();
  try {
    return (await client.query<T>(text, values)).rows;
  } finally {
    await client.end();
  }
}
