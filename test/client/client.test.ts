import { createServer } from 'node:http';
import { createClient, ifMatch, PosternApiError, type PosternClient } from '../../src/client/index.js';
import { ADMIN_TOKEN, startTestGateway, type TestGateway } from '../support/gateway.js';
import { unusedPort } from '../support/unused-port.js';

let gateway: TestGateway;
let client: PosternClient;
beforeAll(async () => {
  gateway = await startTestGateway();
  client = createClient({ url: `${gateway.url}/`, token: ADMIN_TOKEN });
});
afterAll(() => gateway.stop());

/** The error of a request that must fail. */
async function failure(request: Promise<unknown>): Promise<PosternApiError> {
  const error = await request.then(
    () => null,
    (error: unknown) => error,
  );
  expect(error).toBeInstanceOf(PosternApiError);
  return error as PosternApiError;
}

describe('the client of the admin API', () => {
  it('creates, changes by If-Match and removes, with the types of openapi.json', async () => {
    const team = await client.POST('/admin/v1/teams', { body: { name: 'far/away team' } });
    const params = { path: { id: team.name } };
    const changed = await client.PATCH('/admin/v1/teams/{id}', {
      params,
      headers: ifMatch(team),
      body: { disabled: true },
    });
    expect([changed.id, changed.disabled]).toEqual([team.id, true]);
    const stale = await failure(
      client.PATCH('/admin/v1/teams/{id}', { params, headers: ifMatch(team), body: { disabled: false } }),
    );
    expect(stale).toMatchObject({ status: 409, code: 'conflict' });
    await client.POST('/admin/v1/providers', {
      body: { name: 'mine', url: 'https://mine.example', secret: null },
    });
    expect(
      await client.DELETE('/admin/v1/providers/{name}', { params: { path: { name: 'mine' } } }),
    ).toBeUndefined();
  });

  it('reads every page of a list', async () => {
    for (const name of ['a', 'b', 'c']) await client.POST('/admin/v1/teams', { body: { name } });
    const init = { params: { query: { limit: 1 } } };
    const names: string[] = [];
    for await (const { name } of client.all('/admin/v1/teams', init)) names.push(name);
    expect(names).toEqual(expect.arrayContaining(['a', 'b', 'c', 'default']));
    let pages = 0;
    for await (const { data } of client.pages('/admin/v1/teams', init)) pages += data.length;
    expect(pages).toBe(names.length);
  });

  it('throws the error of the gateway with its status, code and fields', async () => {
    const invalid = await failure(client.GET('/admin/v1/keys', { params: { query: { limit: 9000 } } }));
    expect(invalid).toMatchObject({ status: 400, code: 'invalid_request', details: [{ field: 'limit' }] });
    const wrong = createClient({ url: gateway.url, token: 'wrong' });
    expect(await failure(wrong.GET('/admin/v1/keys'))).toMatchObject({ status: 401 });
    const own = await failure(wrong.GET('/self/v1/key'));
    expect(own).toMatchObject({ status: 401, code: 'invalid_api_key' });
    expect(own.requestId).toMatch(/^[\da-f-]{36}$/);
  });

  it('throws for no response, one that breaks off, and one of something else, which it does not follow', async () => {
    const seen: string[] = [];
    const server = createServer((req, res) => {
      seen.push(req.url!);
      if (req.url === '/broken/admin/v1/teams') {
        res.writeHead(200, { 'content-length': '100' }).write('{');
        return res.socket!.end();
      }
      const moved = req.url === '/moved/admin/v1/teams';
      return res.writeHead(moved ? 302 : 200, moved ? { location: '/elsewhere' } : {}).end('<html>');
    });
    // Nothing listens there once it has stopped.
    const port = await unusedPort();
    await new Promise<void>((listening) => server.listen(port, '127.0.0.1', listening));
    const url = `http://127.0.0.1:${port}`;
    const at = (path: string) =>
      failure(createClient({ url: url + path, token: 'x' }).GET('/admin/v1/teams'));
    expect(await at('/broken')).toMatchObject({ status: 0, code: 'unreachable' });
    expect(await at('/html')).toMatchObject({ status: 200, code: 'unexpected_response' });
    const moved = await at('/moved');
    expect(moved).toMatchObject({ status: 302, code: 'unexpected_response' });
    expect(moved.message).toContain('redirect to /elsewhere');
    expect(seen).toHaveLength(3);
    await new Promise((closed) => server.close(closed));
    expect(await at('')).toMatchObject({
      status: 0,
      code: 'unreachable',
      cause: expect.anything() as unknown,
    });
  });

  it('rejects what would put a secret into the errors of requests, and does not show it', () => {
    const { url } = gateway;
    expect(() => createClient({ url, token: 'secret\nsecret' })).toThrow(/^token: must be (?!.*secret)/);
    const withPassword = url.replace('://', '://admin:secret@');
    expect(() => createClient({ url: withPassword })).toThrow(/^url: must not contain (?!.*secret)/);
  });

  it('passes an export on as it comes, with its headers', async () => {
    const query = { format: 'csv' as const };
    const response = await client.response('GET', '/admin/v1/requests/export', { params: { query } });
    expect(response.headers.has('x-recorded-until')).toBe(true);
    expect(await response.text()).toMatch(/^id,/);
  });

  it('throws what its caller aborted it with, and uses the fetch that it was given', async () => {
    const reason = new Error('no longer wanted');
    const signal = AbortSignal.abort(reason);
    await expect(client.GET('/admin/v1/teams', { signal })).rejects.toBe(reason);
    const urls: string[] = [];
    const own = createClient({
      ...{ url: gateway.url, token: ADMIN_TOKEN },
      fetch: (request) => {
        urls.push(request.url);
        return fetch(request);
      },
    });
    await own.GET('/admin/v1/teams', { params: { query: { limit: 1 } } });
    expect(urls).toEqual([`${gateway.url}/admin/v1/teams?limit=1`]);
  });
});
