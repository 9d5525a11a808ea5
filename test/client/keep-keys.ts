import { createClient, ifMatch, PosternApiError } from '../../src/client/index.js';

/** Issues a key for each name that the team has none for, and disables the keys of all other names. */
export async function keepKeys(url: string, token: string, team: string, names: readonly string[]) {
  const client = createClient({ url, token });
  const missing = new Set(names);
  const query = { team, status: 'active' as const };
  for await (const key of client.all('/admin/v1/keys', { params: { query } })) {
    if (missing.delete(key.name)) continue;
    await client.PATCH('/admin/v1/keys/{id}', {
      params: { path: { id: key.id } },
      headers: ifMatch(key),
      body: { disabled: true },
    });
  }
  const issued = new Map<string, string>();
  for (const name of missing) {
    try {
      const { key } = await client.POST('/admin/v1/keys', { body: { team, name } });
      if (key !== null) issued.set(name, key);
    } catch (error) {
      if (!(error instanceof PosternApiError) || error.code !== 'conflict') throw error;
      console.error(`${name}: ${error.message}`);
    }
  }
  return issued;
}
