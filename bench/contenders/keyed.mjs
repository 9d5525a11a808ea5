// Postern with an administrator's token, and calls with a key that was made with it.
import { startPostern } from './postern.mjs';

export const ADMIN_TOKEN = 'bench-admin-token-0123456789abcdef';

/** A gateway, and calls with a key that has these members. @param price of a model @param env added to the gateway's */
export async function startWithKey(bench, members, price = null, env = {}, nodeArgs = undefined) {
  const gateway = await startPostern(bench, { nodeArgs, env: { ADMIN_TOKEN, ...env } });
  if (price !== null) await createIn(gateway, 'prices', price);
  const { key } = await createIn(gateway, 'keys', { team: 'default', name: 'bench', ...members });
  return { ...gateway, headers: { Authorization: `Bearer ${key}` } };
}

/** Makes something by the admin API of such a gateway. */
export async function createIn({ port }, what, members) {
  const response = await fetch(`http://127.0.0.1:${port}/admin/v1/${what}`, {
    method: 'POST',
    headers: { authorization: `Bearer ${ADMIN_TOKEN}`, 'content-type': 'application/json' },
    body: JSON.stringify(members),
  });
  if (response.status !== 201) throw new Error(`no ${what}: ${await response.text()}`);
  return response.json();
}

/** Reads something by the admin API of such a gateway. */
export async function readFrom({ port }, what) {
  const response = await fetch(`http://127.0.0.1:${port}/admin/v1/${what}`, {
    headers: { authorization: `Bearer ${ADMIN_TOKEN}` },
  });
  if (response.status !== 200) throw new Error(`no ${what}: ${await response.text()}`);
  return response.json();
}
