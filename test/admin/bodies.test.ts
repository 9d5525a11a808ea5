import { createDatabase, type TestDatabase } from '../support/database.js';
import { startTestGateway, type TestGateway } from '../support/gateway.js';
import { call } from './call.js';
import { type Relay, relayTo } from './database-relay.js';

describe('bodies', () => {
  let postern: TestGateway;
  beforeAll(async () => {
    postern = await startTestGateway();
  });
  afterAll(() => postern.stop());

  const post = (body?: string, headers: Record<string, string> = {}) =>
    call(postern, 'POST', '/teams', body, headers);

  describe('a body sent to the admin API', () => {
    it.each(['{', '{"name":"x"', '"x"', 'null', '7', "{'name':'x'}", '{"name":"x"}}', '\u0000'])(
      'is rejected with 400 when it is %j',
      async (body) => {
        const answer = await post(body);
        expect(answer.status).toBe(400);
        expect(answer.body.error).toEqual({
          code: 'invalid_request',
          message: expect.stringContaining('JSON') as string,
          details: expect.any(Array) as object[],
        });
      },
    );

    it.each(['[]', '', undefined])('is rejected with 400 when it is %j', async (body) => {
      expect((await post(body)).status).toBe(400);
    });

    it('may not bring a prototype along', async () => {
      const answer = await post('{"name":"proto","__proto__":{"admin":true}}');
      expect(answer.status).toBe(400);
      expect(answer.body.error.details).toMatchObject([{ field: '__proto__' }]);
    });

    it.each([
      'text/plain',
      'application/x-www-form-urlencoded',
      'multipart/form-data; boundary=x',
      'application/jsonx',
    ])('is rejected with 415 when it is %s', async (type) => {
      const answer = await post('{"name":"typed"}', { 'content-type': type });
      expect(answer.status).toBe(415);
      expect(answer.body.error.code).toBe('unsupported_media_type');
    });

    it('may name its charset, and no odd one', async () => {
      const type = (charset: string) => ({ 'content-type': `application/json; charset=${charset}` });
      expect((await post('{"name":"utf"}', type('UTF-8'))).status).toBe(201);
      expect((await post('{"name":"odd"}', type('x-odd'))).status).toBe(415);
      expect((await post('{"name":"enc"}', { 'content-encoding': 'x-odd' })).status).toBe(415);
    });

    it('is rejected with 400 when it is not what its Content-Encoding says', async () => {
      const answer = await post('{"name":"plain"}', { 'content-encoding': 'gzip' });
      expect(answer.status).toBe(400);
      expect(answer.body.error).toMatchObject({ code: 'invalid_request', details: [] });
    });

    it('is rejected with 413 above 100 KB, and the next call works', async () => {
      const answer = await post(JSON.stringify({ name: 'x'.repeat(110_000) }));
      expect(answer.status).toBe(413);
      expect(answer.body.error.code).toBe('request_too_large');
      expect(answer.headers.get('connection')).toBe('close');
      expect((await post('{"name":"after"}')).status).toBe(201);
    });

    it('is not needed for a revocation', async () => {
      const { body } = await call(postern, 'POST', '/keys', { team: 'default', name: 'bodiless' });
      expect((await call(postern, 'POST', `/keys/${body.id}/revoke`)).status).toBe(200);
      expect((await call(postern, 'POST', `/keys/${body.id}/revoke`, { now: true })).status).toBe(400);
    });

    it('does not matter on paths that do not exist', async () => {
      for (const [method, path] of [
        ['GET', '/nothing'],
        ['DELETE', '/keys'],
        ['POST', '/requests'],
      ] as const) {
        const answer = await call(postern, method, path);
        expect(answer.status).toBe(404);
        expect(answer.body.error).toMatchObject({ code: 'not_found', details: [] });
      }
    });
  });
});

describe('database unavailable', () => {
  let database: TestDatabase;
  let relay: Relay;
  let postern: TestGateway;
  beforeAll(async () => {
    database = await createDatabase();
    relay = await relayTo(database.url);
    postern = await startTestGateway({ DATABASE_URL: relay.url });
  });
  afterAll(async () => {
    await postern.stop();
    await relay.cut();
    await database.drop();
  });

  describe('the admin API without its tables', () => {
    it('answers 500 with an id and neither SQL nor table names', async () => {
      await database.query('ALTER TABLE team RENAME TO team_gone');
      const { status, body } = await call(postern, 'GET', '/teams');
      await database.query('ALTER TABLE team_gone RENAME TO team');
      expect(status).toBe(500);
      expect(body.error).toEqual({
        code: 'internal_error',
        message: expect.stringMatching(/gateway log for [0-9a-f-]{36}\.$/) as string,
        details: [],
      });
    });
  });

  describe('the admin API without its database', () => {
    const endpoints = [
      ['GET', '/teams', undefined],
      ['GET', '/keys', undefined],
      ['GET', '/requests', undefined],
      ['POST', '/teams', { name: 'later' }],
      ['POST', '/keys', { team: 'default', name: 'later' }],
    ] as const;

    it('answers 503 with retry-after, and works again without a restart', async () => {
      await relay.cut();
      for (const [method, path, body] of endpoints) {
        const answer = await call(postern, method, path, body);
        expect(answer.status).toBe(503);
        expect(answer.headers.get('retry-after')).toBe('1');
        expect(answer.body.error).toMatchObject({ code: 'database_unavailable', details: [] });
      }
      await relay.restore();
      for (const [method, path, body] of endpoints) {
        expect((await call(postern, method, path, body)).status).toBe(method === 'GET' ? 200 : 201);
      }
    });
  });
});
