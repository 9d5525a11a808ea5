import { eventually } from '../support/eventually.js';
import { type Issued, JSON_TYPE, limitedForFile, usageResponse } from './limited-gateway.js';
import { never } from '../support/never.js';
import { answer } from '../support/raw-provider.js';

const limited = limitedForFile();
const admin = <T>(method: string, path: string, body?: object) =>
  limited.postern.admin<T>(method, path, body);
let teams = 0;

async function ofNewGroup(members: object): Promise<{ key: Issued; group: string }> {
  const name = `hidden-${++teams}`;
  await admin('POST', '/teams', { name });
  await admin('POST', '/groups', { name, teams: [name], ...members });
  return { key: await limited.issue({ team: name }), group: name };
}

const call = ({ key }: Issued, body: object = {}, path?: string) =>
  limited.send(key, { model: 'm', max_tokens: 100, ...body }, path);

describe('a limit of a group', () => {
  it.each([
    ['requests', { requests_per_minute: 3 }],
    ['tokens', { tokens_per_minute: 4_321 }],
    ['concurrent_requests', { concurrent_requests: 3 }],
  ])('of %s names itself and the time of a retry, and no amounts', async (resource, limits) => {
    const { key, group } = await ofNewGroup({ limits });
    let release = () => {};
    const held = new Promise<void>((resolve) => (release = resolve));
    limited.provider.script = async ({ body, socket }) => {
      await body.catch(() => {});
      if (resource === 'concurrent_requests') await held;
      socket.write(answer('200 OK', JSON_TYPE, usageResponse(limited.use)));
    };
    try {
      const before = limited.provider.requests.length;
      const first = [call(key), call(key), call(key)];
      await eventually(() => limited.provider.requests.length - before === 3);
      for (const path of ['/v1/chat/completions', '/v1/messages']) {
        const { status, headers, error } = await call(key, { max_tokens: 5_000 }, path);
        expect(status).toBe(429);
        expect(headers.get('x-gateway-limit')).toMatch(new RegExp(`^group/${group} ${resource} `));
        expect(Number(headers.get('retry-after'))).toBeGreaterThan(0);
        expect(headers.has('retry-after-ms')).toBe(true);
        expect([...headers.keys()].filter((name) => /^(x-|anthropic-)?ratelimit/.test(name))).toEqual([]);
        const what = resource === 'concurrent_requests' ? 'concurrent requests' : `${resource} per minute`;
        expect(error.message).toMatch(
          new RegExp(`^The limit of ${what} of the group ${group} is reached\\. Try again in \\d+ s\\.$`),
        );
      }
      release();
      await Promise.all(first);
    } finally {
      release();
    }
  });

  never('is shown neither to the holder of a key, nor to the roles of a team', async () => {
    const { key, group } = await ofNewGroup({
      budgets: [{ usd: '4321', period: 'month' }],
      limits: { requests_per_minute: 4_321 },
    });
    expect((await call(key)).status).toBe(200);
    const { id } = await admin<{ id: string }>('GET', `/groups/${group}`);
    for (const path of ['key', 'usage', 'refusals']) {
      const response = await fetch(`${limited.postern.url}/self/v1/${path}`, {
        headers: { authorization: `Bearer ${key.key}` },
      });
      expect([path, response.status]).toEqual([path, 200]);
      expect(await response.text()).not.toContain('4321');
    }
    for (const role of ['team', 'lead']) {
      const { token } = await admin<{ token: string }>('POST', '/tokens', {
        name: `${role}-${group}`,
        role,
        teams: [group],
      });
      for (const filter of ['', `?key=${id}`, '?scope=group', '?scope=installation', `?team=${group}`]) {
        const response = await fetch(`${limited.postern.url}/admin/v1/limits${filter}`, {
          headers: { authorization: `Bearer ${token}` },
        });
        expect([filter, response.status, await response.json()]).toEqual([
          filter,
          200,
          { data: [], next_cursor: null },
        ]);
      }
      const installation = await fetch(`${limited.postern.url}/admin/v1/limits/installation`, {
        headers: { authorization: `Bearer ${token}` },
      });
      expect(installation.status).toBe(403);
    }
  });
});
